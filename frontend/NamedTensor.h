// SPDX-License-Identifier: Apache-2.0
//
// A tensor that a model's file brings beside the model: a variable's value at the start.
#ifndef FRONTEND_NAMEDTENSOR_H
#define FRONTEND_NAMEDTENSOR_H

#include "runtime/abi/mt.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

struct NamedTensor {
  std::string name; // the variable's: "dense/kernel", "adam/dense_kernel_momentum"
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes; // row major, little endian
};

} // namespace mtc

#endif
