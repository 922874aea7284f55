// SPDX-License-Identifier: Apache-2.0
//
// Messages of floats without the blocks that are zeros. The gradient of an embedding has rows of zeros for all ids that
// are not in the batch. A packed message has the blocks that are not zeros, then the floats after the last whole block,
// then a bit for each block. It is at most half as long as the vector, by which the receiver knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

// Vectors of fewer floats are not packed.
inline constexpr int64_t leastSparse = 1 << 14;

// Packs a vector into `to`, which has room for elements / 2 floats. Returns the size in bytes; 0 if too few blocks are
// zeros (+0.0).
size_t packSparse(const float *from, int64_t elements, float *to);

// Unpacks a message of `bytes` bytes in place; `memory` has room for `elements` floats. `bits` is working memory, which
// grows once. Returns false if it is no packed vector of this size.
bool unpackSparse(float *memory, int64_t elements, size_t bytes, std::vector<uint8_t> &bits);

} // namespace mtrun
