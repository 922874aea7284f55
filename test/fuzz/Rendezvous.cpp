// SPDX-License-Identifier: Apache-2.0
//
// Any bytes of a stranger, in pieces of any size: to process 0, to a process that connects, and as messages after the
// greeting. Nobody is known without the secret, no more than a greeting is asked for, and what is shown is text.
#include "runtime/support/greeting.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <utility>

using namespace mtrun;

namespace {

// The bytes in pieces: of 1 to 256, or as many as are wanted.
class Pieces {
public:
  Pieces(std::string_view bytes, size_t size) : bytes_(bytes), size_(size) {}
  std::string_view next(size_t most) {
    std::string_view piece = bytes_.substr(0, std::min(most, size_));
    bytes_.remove_prefix(piece.size());
    return piece;
  }

private:
  std::string_view bytes_;
  size_t size_;
};

void greet(bool listens, std::string_view bytes, size_t size) {
  Greeting greeting(listens, "a secret of 22 bytes..", "sixteen bytes...");
  Pieces pieces(bytes, size);
  size_t asked = 0, sent = greeting.answer().size();
  while (greeting.state() == Greeting::State::Waits) {
    std::string_view piece = pieces.next(greeting.wanted());
    if (piece.empty())
      break;
    asked += piece.size();
    greeting.take(piece);
    sent += greeting.answer().size();
  }
  if (greeting.state() == Greeting::State::Known || asked > challengeBytes + proofBytes ||
      sent > challengeBytes + proofBytes)
    __builtin_trap();
}

void expectText(const std::string &text) {
  for (char c : text)
    if ((c >= 0 && c < 0x20 && c != '\n') || c == 0x7f)
      __builtin_trap();
  if (!isUtf8(text))
    __builtin_trap();
}

void messages(std::string_view bytes, size_t size) {
  MessageReader reader;
  Pieces pieces(bytes, size);
  std::vector<Message> got;
  bool good = true;
  size_t total = 0;
  for (std::string_view piece; good && !(piece = pieces.next(4096)).empty();)
    good = reader.take(piece, got);
  for (const Message &message : got) {
    total += 5 + message.bytes.size();
    Hello hello;
    expectText(printable(message.bytes));
    if (message.bytes.size() > maxMessageBytes)
      __builtin_trap();
    if (parseHello(message.bytes, hello)) {
      expectText(hello.name);
      std::string differs = difference("processes: 2\nplan: 1\nseed: 7", hello.agreement);
      expectText(differs);
      if (differs.size() > 1000)
        __builtin_trap();
    }
  }
  if (total > bytes.size())
    __builtin_trap();
  // In one piece as in many.
  MessageReader whole;
  std::vector<Message> again;
  if (whole.take(bytes, again) != good || again.size() != got.size())
    __builtin_trap();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  std::string_view bytes(reinterpret_cast<const char *>(data) + 2, size - 2);
  size_t piece = size_t{data[1]} + 1;
  if (data[0] % 4 < 2)
    greet(data[0] % 2 == 0, bytes, piece);
  else
    messages(bytes, piece);
  return 0;
}
