// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/Message.h"

namespace mtc::onnx {

constexpr size_t maxName = 4096;

void limit(size_t count, size_t most, const char *what) {
  if (count > most)
    throw Problem("expected at most " + std::to_string(most) + " " + what + ", found " + std::to_string(count));
}

// UTF-8 (Unicode's table 3-7) without control characters.
static bool isText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f)
      return false;
    size_t length = byte < 0x80                   ? 1
                    : byte >= 0xc2 && byte < 0xe0 ? 2
                    : byte >= 0xe0 && byte < 0xf0 ? 3
                    : byte >= 0xf0 && byte < 0xf5 ? 4
                                                  : 0;
    if (length == 0 || i + length > text.size())
      return false;
    for (size_t k = 1; k < length; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      bool edge = k == 1 && ((byte == 0xe0 && next < 0xa0) || (byte == 0xed && next > 0x9f) ||
                             (byte == 0xf0 && next < 0x90) || (byte == 0xf4 && next > 0x8f));
      if (next < 0x80 || next > 0xbf || edge)
        return false;
    }
    i += length;
  }
  return true;
}

std::string nameOf(Field &field, const char *what) {
  std::string_view name = bytesOf(field);
  if (name.size() > maxName)
    throw Problem(std::string("expected names of at most 4096 bytes, found one of ") + std::to_string(name.size()) +
                  " for " + what);
  if (!isText(name))
    throw Problem(std::string("expected names in UTF-8 without control characters, found another for ") + what);
  return std::string(name);
}

} // namespace mtc::onnx
