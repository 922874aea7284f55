// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), computed by libcrypto with the CPU's instructions for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mtrun {

using Digest = std::array<uint8_t, 32>;

// The hash of bytes that arrive in parts.
class Sha256 {
public:
  Sha256();
  void add(const void *bytes, size_t size);
  void add(const Digest &digest) { add(digest.data(), digest.size()); }
  Digest finish(); // nothing may follow

private:
  alignas(8) std::array<std::byte, 112> state_; // libcrypto's SHA256_CTX
};

Digest sha256(std::string_view bytes);

// Returns two hexadecimal digits for each byte.
std::string hexadecimal(std::string_view bytes);
std::string hexadecimal(const Digest &digest);
// Parses the text of hexadecimal(). Returns false for another text.
bool parseHexadecimal(std::string_view text, Digest &digest);

} // namespace mtrun
