// SPDX-License-Identifier: Apache-2.0
#define OPENSSL_SUPPRESS_DEPRECATED // the replacement, EVP, would link all algorithms
#include "runtime/support/sha256.h"

#include <openssl/sha.h>

namespace mtrun {

static_assert(sizeof(SHA256_CTX) == 112 && alignof(SHA256_CTX) <= 8);

Sha256::Sha256() { SHA256_Init(reinterpret_cast<SHA256_CTX *>(&state_)); }

void Sha256::add(const void *bytes, size_t size) {
  SHA256_Update(reinterpret_cast<SHA256_CTX *>(&state_), bytes, size);
}

Digest Sha256::finish() {
  Digest digest;
  SHA256_Final(digest.data(), reinterpret_cast<SHA256_CTX *>(&state_));
  return digest;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.finish();
}

std::string hexadecimal(std::string_view bytes) {
  constexpr const char *digits = "0123456789abcdef";
  std::string text;
  for (char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string hexadecimal(const Digest &digest) {
  return hexadecimal(std::string_view(reinterpret_cast<const char *>(digest.data()), digest.size()));
}

static int digitOf(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

bool parseHexadecimal(std::string_view text, Digest &digest) {
  if (text.size() != 2 * digest.size())
    return false;
  for (size_t i = 0; i < digest.size(); ++i) {
    int high = digitOf(text[2 * i]), low = digitOf(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    digest[i] = static_cast<uint8_t>(16 * high + low);
  }
  return true;
}

} // namespace mtrun
