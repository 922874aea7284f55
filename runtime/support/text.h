// SPDX-License-Identifier: Apache-2.0
//
// Text from files and users: checks of UTF-8, and removal of control characters before text is printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mtrun {

// Returns the number of bytes of the first UTF-8 character of `text`; 0 if `text` is empty or the character is invalid:
// overlong, a surrogate or above 10FFFF.
inline size_t utf8Bytes(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  uint32_t first = byte(0);
  size_t size = text.empty()   ? 0
                : first < 0x80 ? 1
                : first < 0xc2 ? 0
                : first < 0xe0 ? 2
                : first < 0xf0 ? 3
                : first < 0xf5 ? 4
                               : 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return size;
}

inline bool isUtf8(std::string_view text) {
  while (size_t size = utf8Bytes(text))
    text.remove_prefix(size);
  return text.empty();
}

// Replaces control characters other than newline, and bytes that are not valid UTF-8, by question marks. The text never
// becomes longer, so no memory is allocated.
inline void makePrintable(std::string &text) {
  size_t shown = 0;
  for (std::string_view rest = text; !rest.empty();) {
    size_t size = utf8Bytes(rest);
    auto first = static_cast<uint8_t>(rest[0]);
    bool control = (size == 1 && (first < 0x20 || first == 0x7f) && first != '\n') ||
                   (size == 2 && first == 0xc2 && static_cast<uint8_t>(rest[1]) < 0xa0);
    if (size == 0 || control)
      text[shown++] = '?';
    else
      for (size_t i = 0; i < size; ++i)
        text[shown++] = rest[i];
    rest.remove_prefix(size == 0 ? 1 : size);
  }
  text.resize(shown);
}

inline std::string printable(std::string_view text) {
  std::string shown(text);
  makePrintable(shown);
  return shown;
}

} // namespace mtrun
