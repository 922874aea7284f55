// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/secret.h"

#include <cerrno>
#include <sys/random.h>

namespace mtrun {
namespace {

constexpr size_t blockBytes = 64;

std::string_view view(const Digest &digest) { return {reinterpret_cast<const char *>(digest.data()), digest.size()}; }

} // namespace

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
