// SPDX-License-Identifier: Apache-2.0
//
// Bytes as choices among the words of a grammar. Behind the last byte choices follow from all of them, so that a short
// input is a whole text, and the same one each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

class Choices {
public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes(bytes) {
    for (uint8_t byte : bytes)
      state = (state ^ byte) * 0x100000001b3;
  }

  // A number below `count`, which is 1 or more.
  size_t below(size_t count) {
    uint64_t number = next();
    if (count > 256)
      number = number << 8 | next();
    return number % count;
  }
  // True once in so many times.
  bool once(size_t times) { return below(times) == 0; }
  template <typename List> const auto &of(const List &list) { return list[below(std::size(list))]; }
  template <typename T> T of(std::initializer_list<T> list) { return list.begin()[below(list.size())]; }
  // Mostly small, now and then at a limit.
  int64_t number() {
    static constexpr int64_t limits[] = {-1, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 1 << 24, 65536, -2, 255, 1000};
    return once(12) ? of(limits) : static_cast<int64_t>(below(6));
  }
  std::vector<int64_t> numbers(size_t most) {
    std::vector<int64_t> list(below(most + 1));
    for (int64_t &each : list)
      each = number();
    return list;
  }
  std::string list(size_t most) {
    std::string text;
    for (int64_t each : numbers(most))
      text += (text.empty() ? "" : ", ") + std::to_string(each);
    return text;
  }

private:
  uint8_t next() {
    if (at < bytes.size())
      return bytes[at++];
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint8_t>(state >> 40);
  }

  std::span<const uint8_t> bytes;
  size_t at = 0;
  uint64_t state = 0xcbf29ce484222325;
};
