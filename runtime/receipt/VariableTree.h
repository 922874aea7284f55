// SPDX-License-Identifier: Apache-2.0
//
// The hash tree of a session's variables: chunks of 1 MiB, then variables, then all of them in the plan's order.
#pragma once

#include "runtime/receipt/Merkle.h"
#include "runtime/session/Session.h"

#include <string>
#include <vector>

namespace mtrun {

constexpr uint64_t chunkBytes = uint64_t{1} << 20;
// Digits of each chunk's hash in a receipt, by which a difference is found; the root is what proves.
constexpr size_t chunkDigits = 8;

inline uint64_t chunkCount(uint64_t bytes) { return bytes / chunkBytes + (bytes % chunkBytes != 0); }

struct VariableTree {
  std::vector<Digest> ofVariables; // the root over the chunks of each variable
  Digest root;                     // over entries "NAME\0ROOT" of variables, where ROOT has 32 bytes
  std::string chunks;              // the first digits of each chunk's hash

  // Hashes the variables on the session's threads. No step may be in flight. Returns the session's health.
  Status compute(const Session &session);
};

// The hash of a variable's entry in the tree over all variables.
Digest namedDigest(std::string name, const Digest &root);
// The root over one variable's chunks.
Digest rootOfBytes(std::span<const std::byte> bytes);

} // namespace mtrun
