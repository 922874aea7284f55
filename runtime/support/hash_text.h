// SPDX-License-Identifier: Apache-2.0
//
// Hashes as text, and sealed JSON text, which ends with its own hash: manifests of checkpoints and tuning files.
#pragma once

#include "runtime/abi/plan_file.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace mtrun {

std::string hashText(const Hash128 &hash);            // 32 hexadecimal digits, high half first
std::string hashText(const void *bytes, size_t size); // the hash of these bytes
// Parses the text of hashText(). Throws std::runtime_error with the expected and the found text.
Hash128 hashOfText(const std::string &text);

// Appends the member "hash", the hash of the text before it, and a newline. `text` is an object that ends with a
// newline and a brace, with members indented by one space.
Hash128 seal(std::string &text);
// The number of bytes that seal() appends, from the comma on.
inline constexpr size_t sealBytes = 47;
// Returns true if `text` ends with its own hash.
bool isSealed(std::string_view text, Hash128 &hash);

} // namespace mtrun
