// SPDX-License-Identifier: Apache-2.0
//
// .npy files: magic, version, header, then the elements, row major and little endian.
#pragma once

#include "runtime/abi/mt.h"
#include "runtime/data/Table.h"

#include <cstdint>
#include <span>
#include <string>

namespace mtrun {

// Return the header: magic, length and dictionary, padded with spaces to a multiple of 64 bytes. Version 1.0.
std::string npyHeader(mt_dtype dtype, std::span<const int64_t> shape);
std::string npyHeader(const std::string &descriptor, std::span<const int64_t> shape);

// Reads the array of a file of version 1, 2 or 3; its first axis counts samples. MT_CORRUPT: damaged file. MT_INVALID:
// unsupported type. The field shares `owner`, which owns the bytes of `file`.
Status parseNpy(std::span<const uint8_t> file, std::shared_ptr<const uint8_t> owner, const std::string &where,
                Field &field);

} // namespace mtrun
