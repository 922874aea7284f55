// SPDX-License-Identifier: Apache-2.0
//
// The contents of a data source before they are bound to a model: fields of samples in memory, as the bytes of the
// file.
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

// One value of every sample. Sample i is at bytes + i * stride.
struct Field {
  // Name in the file, or for example "image" or "label". Sources with one input and one target are bound by role.
  std::string name;
  std::string where; // the file, for messages
  mtrun_role role = MTRUN_INPUT;
  bool named = false; // bound only by name, for any role
  Stored type = Stored::U8;
  std::vector<uint64_t> shape; // shape of a sample
  uint64_t samples = 0;
  uint64_t stride = 0; // bytes
  std::shared_ptr<const uint8_t> bytes;
  std::shared_ptr<const Pictures> pictures = {}; // if set, samples are decoded on demand, and `bytes` is null
  bool spare = false;                            // skipped if the model has no tensor of its name

  uint64_t elements() const; // per sample; sources have checked that the product fits
};

struct Table {
  std::vector<Field> fields;
  std::vector<std::string> classes; // names of the labels 0, 1, ..., if the source has names
  std::vector<std::string> notes;   // messages for the user
};

// Reads the data of the specification. MT_INVALID, MT_CORRUPT, MT_IO, MT_NO_MEMORY.
Status openTable(const DataSpec &spec, Table &table);

// Finds the samples of the key range=, or all. MT_INVALID: the field is empty or too short.
Status sampleRange(const DataSpec &spec, const Field &field, uint64_t &begin, uint64_t &end);

// Reads a file, and inflates it if it is gzip data. If `path` does not exist, `path`.gz is read. `opened` receives the
// path of the file.
Status readData(const std::string &path, std::vector<uint8_t> &bytes, std::string &opened);

// Returns the value of a 16-bit float.
float halfValue(uint16_t bits);

// Moves a vector into a shared pointer.
std::shared_ptr<const uint8_t> share(std::vector<uint8_t> &&bytes);

} // namespace mtrun
