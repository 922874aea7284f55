// SPDX-License-Identifier: Apache-2.0
//
// What a data source holds, before any model is asked: fields of samples in memory, kept as the bytes of the file.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/data/Spec.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mtrun {

class Pictures;

// One value of every sample. Sample i lies at bytes + i * stride.
struct Field {
  std::string
      name; // as the file says, or "image", "label" and such; sources with one input and one target are bound by role
  std::string where; // the file, for messages
  mtrun_role role = MTRUN_INPUT;
  bool named = false; // bound by its name alone, whatever the role
  Stored type = Stored::U8;
  std::vector<uint64_t> shape; // of a sample
  uint64_t samples = 0;
  uint64_t stride = 0; // bytes
  std::shared_ptr<const uint8_t> bytes;
  std::shared_ptr<const Pictures> pictures = {}; // instead of bytes: samples that are decoded when they are asked for
  bool spare = false;                            // left out where the model has nothing of its name

  uint64_t elements() const; // of a sample; sources checked the product
};

struct Table {
  std::vector<Field> fields;
  std::vector<std::string> classes; // names of the labels 0, 1, ..., if the source has names
  std::vector<std::string> notes;   // what the user should know of it
};

// Reads what the specification names. MT_INVALID, MT_CORRUPT, MT_IO, MT_NO_MEMORY.
Status openTable(const DataSpec &spec, Table &table);

// The samples of a field that range= names, or all. MT_INVALID: the field has none, or not all of them.
Status sampleRange(const DataSpec &spec, const Field &field, uint64_t &begin, uint64_t &end);

// The bytes of a file, inflated if they are gzip data, as readGzip does; `path`.gz where there is no `path`. `opened`
// is the path that was read.
Status readData(const std::string &path, std::vector<uint8_t> &bytes, std::string &opened);

// The value of a number of 16 bits.
float halfValue(uint16_t bits);

// Takes over a vector.
std::shared_ptr<const uint8_t> share(std::vector<uint8_t> &&bytes);

} // namespace mtrun
