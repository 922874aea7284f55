// SPDX-License-Identifier: Apache-2.0
//
// .safetensors files: u64 length of a JSON header | header | data. Dense, sorted, no holes.
#pragma once

#include "runtime/abi/mt.h"
#include "runtime/support/status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

struct SafeTensor {
  std::string name;
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes; // row major, little endian; borrowed
};

// Text by text: the format's __metadata__.
using Metadata = std::map<std::string, std::string>;

// Orders the tensors (largest element first, then by name) and returns the length and header that go before their
// bytes.
std::string safetensorsHeader(std::vector<SafeTensor> &tensors, const Metadata &metadata = {});

// Writes the file as a whole or not at all. The bytes depend on the arguments alone. MT_IO.
Status writeSafetensors(const std::string &path, std::vector<SafeTensor> tensors, const Metadata &metadata = {});

// Finds the tensors of a file's bytes, by offset. Any bytes are fine: MT_CORRUPT says what is wrong and where. `where`
// begins messages.
Status parseSafetensors(std::span<const std::byte> file, const std::string &where, std::vector<SafeTensor> &tensors,
                        Metadata *metadata = nullptr);

// Tensors of 16-bit floats, as most files on the web have them, as f32. `storage` holds their bytes.
void widenHalves(std::vector<SafeTensor> &tensors, std::vector<std::vector<std::byte>> &storage);

// Reads a whole file. MT_IO, MT_NO_MEMORY.
Status readWholeFile(const std::string &path, std::vector<std::byte> &bytes);

} // namespace mtrun
