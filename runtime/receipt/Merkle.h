// SPDX-License-Identifier: Apache-2.0
//
// Merkle trees as in RFC 6962, section 2.1: an entry's hash is SHA-256(0x00, bytes), a node's is SHA-256(0x01, left,
// right), and the left subtree of n entries has the largest power of two below n.
#pragma once

#include "runtime/support/sha256.h"

#include <vector>

namespace mtrun {

Digest entryDigest(const void *bytes, size_t size);
inline Digest entryDigest(std::string_view bytes) { return entryDigest(bytes.data(), bytes.size()); }
// Returns the root over entries from entryDigest(); SHA-256 of nothing if there are none.
Digest rootOf(std::span<const Digest> entries);

} // namespace mtrun
