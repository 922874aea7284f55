// SPDX-License-Identifier: Apache-2.0
//
// .npy files, version 1.0: the header; elements follow row major, little endian.
#pragma once

#include "runtime/abi/mt.h"

#include <cstdint>
#include <span>
#include <string>

namespace mtrun {

// Magic, length and dictionary, padded with spaces to a multiple of 64 bytes.
std::string npyHeader(mt_dtype dtype, std::span<const int64_t> shape);

} // namespace mtrun
