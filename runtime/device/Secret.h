// SPDX-License-Identifier: Apache-2.0
//
// What proves that a process knows a secret without telling it: HMAC-SHA-256 (RFC 2104, FIPS 180-4), and bytes that
// nobody can guess.
#pragma once

#include "runtime/support/status.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mtrun {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
Digest hmac(std::string_view key, std::string_view bytes);
// Takes the same time wherever they differ.
bool equalSecretly(std::string_view a, std::string_view b);
// So many bytes from the system's generator. MT_IO.
Status randomBytes(size_t count, std::string &bytes);

} // namespace mtrun
