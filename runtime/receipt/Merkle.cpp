// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Merkle.h"

#include <bit>

namespace mtrun {

Digest entryDigest(const void *bytes, size_t size) {
  Sha256 hash;
  hash.add("\0", 1);
  hash.add(bytes, size);
  return hash.finish();
}

Digest rootOf(std::span<const Digest> entries) {
  if (entries.empty())
    return sha256("");
  if (entries.size() == 1)
    return entries[0];
  size_t left = std::bit_ceil(entries.size()) / 2;
  Sha256 hash;
  hash.add("\1", 1);
  hash.add(rootOf(entries.first(left)));
  hash.add(rootOf(entries.subspan(left)));
  return hash.finish();
}

} // namespace mtrun
