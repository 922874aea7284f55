// SPDX-License-Identifier: Apache-2.0
//
// Hashes in text, and JSON text that ends with its own: checkpoints' manifests, tuning files.
#pragma once

#include "runtime/abi/plan_file.h"

#include <string>
#include <string_view>

namespace mtrun {

std::string hashText(const Hash128 &hash); // 32 hexadecimal digits, high half first
// Throws std::runtime_error, which says what was expected and found.
Hash128 hashOfText(const std::string &text);

// Adds a last member "hash" to the text of an object, indented by one, which ends with a newline and a brace: the hash
// of all that stands before it. Then a newline.
Hash128 seal(std::string &text);
// Bytes from the hash's comma on.
inline constexpr size_t sealBytes = 47;
// Whether `text` ends with its own hash.
bool isSealed(std::string_view text, Hash128 &hash);

} // namespace mtrun
