// SPDX-License-Identifier: Apache-2.0
//
// What kernels must give, to the bit.
#ifndef TEST_UNIT_CODEGEN_EXPECTED_H
#define TEST_UNIT_CODEGEN_EXPECTED_H

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace codegentest {

// The sum over shards [first, first + count), a power of two; a node whose right child is empty is its left child.
template <typename Shard> float tree(int64_t first, int64_t count, int64_t used, const Shard &shard) {
  if (count == 1)
    return shard(first);
  float left = tree(first, count / 2, used, shard);
  return first + count / 2 < used ? left + tree(first + count / 2, count / 2, used, shard) : left;
}

// Fails the test at the first element that differs in any bit.
inline void expectBits(const float *actual, const std::vector<float> &expected, const std::string &where) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::memcmp(&actual[i], &expected[i], sizeof(float)) != 0) {
      ADD_FAILURE() << where << ": element " << i << " of " << expected.size() << ": expected " << expected[i]
                    << ", found " << actual[i];
      return;
    }
}

} // namespace codegentest

#endif
