// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/greeting.h"

#include "runtime/support/secret.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace mtrun {

constexpr std::string_view mark = "mtrun processes\n";
constexpr size_t headBytes = 5, maxShown = 200;
static_assert(mark.size() + nonceBytes == challengeBytes);

Greeting::Greeting(bool listens, std::string_view secret, std::string_view nonce)
    : listens_(listens), secret_(secret), nonce_(nonce), wanted_(listens ? responseBytes : challengeBytes) {
  if (listens)
    answer_ = std::string(mark) + nonce_;
}

std::string Greeting::proof(std::string_view side) const {
  const std::string &first = listens_ ? nonce_ : others_, &second = listens_ ? others_ : nonce_;
  Digest digest = hmac(secret_, std::string(side) + first + second);
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

void Greeting::take(std::string_view bytes) {
  if (state_ != State::Waits)
    return;
  received_ += bytes;
  if (received_.size() >= wanted_)
    step();
}

void Greeting::step() {
  std::string_view got = received_;
  if (listens_) { // a response of a connecting process
    others_ = got.substr(0, nonceBytes);
    bool known = equalSecretly(got.substr(nonceBytes), proof("connects"));
    state_ = known ? State::Known : State::Refused;
    if (known)
      answer_ = proof("listens");
  } else if (others_.empty()) { // a challenge of process 0
    if (!got.starts_with(mark)) {
      state_ = State::Refused;
      return;
    }
    others_ = got.substr(mark.size());
    answer_ = nonce_ + proof("connects");
    wanted_ = proofBytes;
    received_.clear();
  } else { // a proof of process 0
    state_ = equalSecretly(got, proof("listens")) ? State::Known : State::Refused;
  }
}

bool MessageReader::take(std::string_view bytes, std::vector<Message> &messages) {
  while (!bytes.empty()) {
    uint32_t size = 0;
    size_t missing = headBytes - std::min(received_.size(), headBytes);
    if (missing == 0) {
      std::memcpy(&size, received_.data() + 1, sizeof size);
      missing = headBytes + size - received_.size();
    }
    received_ += bytes.substr(0, missing);
    bytes.remove_prefix(std::min(missing, bytes.size()));
    if (received_.size() < headBytes)
      return true;
    std::memcpy(&size, received_.data() + 1, sizeof size);
    if (size > maxMessageBytes)
      return false;
    if (received_.size() == headBytes + size) {
      messages.push_back({received_[0], received_.substr(headBytes)});
      received_.clear();
    }
  }
  return true;
}

std::string messageBytes(char kind, std::string_view bytes) {
  std::string message(1, kind);
  auto size = static_cast<uint32_t>(bytes.size());
  return message.append(reinterpret_cast<const char *>(&size), sizeof size).append(bytes);
}

std::string helloBytes(const Hello &hello) {
  return std::to_string(hello.process) + "\n" + hello.name + "\n" + hello.agreement;
}

// Returns the first line and removes it from the text.
static std::string_view line(std::string_view &text) {
  size_t end = std::min(text.find('\n'), text.size());
  std::string_view first = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

static std::string shown(std::string_view text) { return printable(text.substr(0, maxShown)); }

bool parseHello(std::string_view bytes, Hello &hello) {
  std::string_view number = line(bytes);
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), hello.process);
  if (error != std::errc() || end != number.data() + number.size())
    return false;
  hello.name = shown(line(bytes));
  hello.agreement = bytes;
  return true;
}

std::string difference(std::string_view mine, std::string_view theirs) {
  while (!mine.empty() || !theirs.empty()) {
    std::string_view a = line(mine), b = line(theirs);
    if (a != b)
      return "expected " + (a.empty() ? "none" : shown(a)) + ", found " + (b.empty() ? "none" : shown(b));
  }
  return "";
}

} // namespace mtrun
