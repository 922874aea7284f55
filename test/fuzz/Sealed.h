// SPDX-License-Identifier: Apache-2.0
//
// Inputs for readers of texts that end with their own hash.
#pragma once

#include "runtime/support/hash_text.h"

#include <cstddef>
#include <cstdint>
#include <string>

// Parses the bytes with a right hash at their end; one in sixteen as it is too. A text with its hash is one mutation
// away from one with a wrong hash, so most inputs are given theirs.
inline void parseSealed(const uint8_t *data, size_t size, void (*parse)(const std::string &text)) {
  std::string text(reinterpret_cast<const char *>(data), size);
  if (size % 16 == 0)
    parse(text);
  if (size > mtrun::sealBytes && text.ends_with("\"\n}\n"))
    text.resize(size - mtrun::sealBytes);
  text += "\n}";
  mtrun::seal(text);
  parse(text);
}
