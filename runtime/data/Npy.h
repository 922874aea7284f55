// SPDX-License-Identifier: Apache-2.0
//
// .npy files: magic, version, the header, elements row major and little endian.
#pragma once

#include "runtime/abi/mt.h"
#include "runtime/data/Table.h"

#include <cstdint>
#include <span>
#include <string>

namespace mtrun {

// Magic, length and dictionary, padded with spaces to a multiple of 64 bytes. Version 1.0.
std::string npyHeader(mt_dtype dtype, std::span<const int64_t> shape);
std::string npyHeader(const std::string &descriptor, std::span<const int64_t> shape);

// The array in a file of version 1, 2 or 3; its first axis counts samples. Any bytes are fine: MT_CORRUPT, or
// MT_INVALID for a type that we do not read. The field shares `owner`, in which `file` lies.
Status parseNpy(std::span<const uint8_t> file, std::shared_ptr<const uint8_t> owner, const std::string &where,
                Field &field);

} // namespace mtrun
