// SPDX-License-Identifier: Apache-2.0
//
// Reads TFRecord files (u64 length, its masked CRC-32C, the bytes, their masked CRC-32C) and their tf.train.Example
// messages. The files are untrusted: errors are reported, and no more memory is allocated than a file could fill.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

// Receives a record: its number, the offset of its bytes, and the bytes, which are valid only during the call.
using VisitRecord = std::function<Status(uint64_t number, uint64_t offset, std::span<const uint8_t> bytes)>;

// Calls `visit` for every record of a file in order. If the file is gzip data, `inflated` receives the whole inflated
// file, and offsets refer to it. MT_CORRUPT, MT_IO, or the status of `visit`.
Status readRecords(const std::string &path, std::shared_ptr<const std::vector<uint8_t>> &inflated,
                   const VisitRecord &visit);
// The same for a file in memory; `where` begins messages.
Status readRecords(std::span<const uint8_t> file, const std::string &where, const VisitRecord &visit);

// A feature: a name and values of one kind.
struct Feature {
  enum class Kind { None, Bytes, Floats, Ints };
  std::string_view name;
  Kind kind = Kind::None;
  std::vector<std::span<const uint8_t>> bytes;
  std::vector<float> floats;
  std::vector<int64_t> ints;

  size_t count() const { return bytes.size() + floats.size() + ints.size(); }
};

// Parses the features of a message; they are views into it. If a name occurs twice, the last feature counts.
// MT_CORRUPT.
Status parseExample(std::span<const uint8_t> message, std::vector<Feature> &features);

} // namespace mtrun
