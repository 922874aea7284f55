// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/secret.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <sys/random.h>

namespace mtrun {
namespace {

constexpr size_t blockBytes = 64;

// Returns the first 32 bits of the fractional parts of the square roots (`cube`: cube roots) of the first primes. In
// integers: the largest r with r^2 <= p * 2^64, or r^3 <= p * 2^96, modulo 2^32.
template <size_t count> constexpr std::array<uint32_t, count> rootsOfPrimes(bool cube) {
  using Wide = unsigned __int128;
  std::array<uint32_t, count> fractions = {};
  uint64_t prime = 1;
  for (size_t i = 0; i < count; ++i) {
    for (bool composite = true; composite;) {
      ++prime;
      composite = false;
      for (uint64_t d = 2; d * d <= prime; ++d)
        composite = composite || prime % d == 0;
    }
    // r has at most 37 bits. For cubes r^3 <= p * 2^96 is computed as r^2 <= p * 2^96 / r, which fits into 128 bits.
    uint64_t root = 0;
    for (uint64_t bit = uint64_t{1} << 37; bit; bit >>= 1) {
      Wide r = root | bit;
      if (r * r <= (cube ? (Wide(prime) << 96) / r : Wide(prime) << 64))
        root |= bit;
    }
    fractions[i] = static_cast<uint32_t>(root);
  }
  return fractions;
}

constexpr auto initial = rootsOfPrimes<8>(false);
constexpr auto constants = rootsOfPrimes<64>(true);

void addBlock(std::array<uint32_t, 8> &state, const uint8_t *block) {
  uint32_t w[64];
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           block[4 * i + 3];
  for (size_t i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const uint32_t added[] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i)
    state[i] += added[i];
}

std::string_view view(const Digest &digest) { return {reinterpret_cast<const char *>(digest.data()), digest.size()}; }

} // namespace

Digest sha256(std::string_view bytes) {
  std::string text(bytes);
  text += '\x80';
  text.resize((text.size() + 8 + blockBytes - 1) / blockBytes * blockBytes);
  for (size_t i = 0; i < 8; ++i) // the length in bits, big endian
    text[text.size() - 1 - i] = static_cast<char>(uint64_t{bytes.size()} * 8 >> 8 * i);
  std::array<uint32_t, 8> state = initial;
  for (size_t at = 0; at < text.size(); at += blockBytes)
    addBlock(state, reinterpret_cast<const uint8_t *>(text.data()) + at);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest hmac(std::string_view key, std::string_view bytes) {
  std::string padded(key.size() > blockBytes ? view(sha256(key)) : key);
  padded.resize(blockBytes);
  std::string inner, outer;
  for (char c : padded) {
    inner += static_cast<char>(c ^ 0x36);
    outer += static_cast<char>(c ^ 0x5c);
  }
  Digest within = sha256(inner.append(bytes));
  return sha256(outer.append(view(within)));
}

bool equalSecretly(std::string_view a, std::string_view b) {
  if (a.size() != b.size())
    return false;
  volatile uint8_t differing = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differing = static_cast<uint8_t>(differing | (a[i] ^ b[i]));
  return differing == 0;
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

Status randomBytes(size_t count, std::string &bytes) {
  bytes.assign(count, '\0');
  for (size_t got = 0; got < count;) {
    ssize_t bytesRead = getrandom(bytes.data() + got, count - got, 0);
    if (bytesRead < 0 && errno == EINTR)
      continue;
    if (bytesRead <= 0)
      return ioError("cannot read", "random bytes", bytesRead < 0 ? errno : EIO);
    got += static_cast<size_t>(bytesRead);
  }
  return {};
}

} // namespace mtrun
