// SPDX-License-Identifier: Apache-2.0
//
// HMAC-SHA-256 (RFC 2104), by which a process proves that it knows a secret without sending it, and random
// bytes.
#pragma once

#include "runtime/support/sha256.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace mtrun {

Digest hmac(std::string_view key, std::string_view bytes);
// Compares in constant time for equal lengths.
bool equalSecretly(std::string_view a, std::string_view b);
// Returns `count` bytes of the system's random number generator. MT_IO.
Status randomBytes(size_t count, std::string &bytes);

} // namespace mtrun
