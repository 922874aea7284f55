// SPDX-License-Identifier: Apache-2.0
//
// Files in the .safetensors format: u64 length of a JSON header | header | data. The data is dense and sorted.
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
  std::span<const std::byte> bytes; // row major, little endian; not owned
};

// The format's __metadata__: a map from text to text.
using Metadata = std::map<std::string, std::string>;

// Returns the size of a tensor by its shape, whether or not it has bytes here.
uint64_t bytesOf(const SafeTensor &tensor);
// Sorts the tensors (largest element type first, then by name) and returns the length and the header that precede their
// bytes.
std::string safetensorsHeader(std::vector<SafeTensor> &tensors, const Metadata &metadata = {});

// Writes the complete file or nothing. The bytes depend only on the arguments. MT_IO.
Status writeSafetensors(const std::string &path, std::vector<SafeTensor> tensors, const Metadata &metadata = {});

// Finds the tensors in the bytes of a file. MT_CORRUPT with the reason and the offset for bytes that are not a valid
// file. `where` begins messages.
Status parseSafetensors(std::span<const std::byte> file, const std::string &where, std::vector<SafeTensor> &tensors,
                        Metadata *metadata = nullptr);

// Converts tensors of 16-bit floats, which are common in published files, to f32. `storage` owns the converted bytes.
void widenHalves(std::vector<SafeTensor> &tensors, std::vector<std::vector<std::byte>> &storage);

// Reads a whole file. MT_IO, MT_NO_MEMORY.
Status readWholeFile(const std::string &path, std::vector<std::byte> &bytes);

} // namespace mtrun
