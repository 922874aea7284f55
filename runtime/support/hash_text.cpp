// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/hash_text.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace mtrun {

static Hash128 hashOf(std::string_view text) {
  return hash128({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

static std::string ending(const Hash128 &hash) { return ",\n\"hash\": \"" + hashText(hash) + "\"\n}\n"; }

std::string hashText(const Hash128 &hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return text;
}

std::string hashText(const void *bytes, size_t size) {
  return hashText(hash128({static_cast<const uint8_t *>(bytes), size}));
}

Hash128 hashOfText(const std::string &text) {
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::runtime_error("expected a hash of 32 hexadecimal digits, found \"" + text + "\"");
  return {std::strtoull(text.c_str() + 16, nullptr, 16), std::strtoull(text.substr(0, 16).c_str(), nullptr, 16)};
}

Hash128 seal(std::string &text) {
  text.resize(text.size() - 2); // the last newline and brace
  Hash128 hash = hashOf(text);
  text += ending(hash);
  return hash;
}

bool isSealed(std::string_view text, Hash128 &hash) {
  if (text.size() < sealBytes)
    return false;
  size_t body = text.size() - sealBytes;
  hash = hashOf(text.substr(0, body));
  return text.substr(body) == ending(hash);
}

} // namespace mtrun
