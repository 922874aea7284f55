// SPDX-License-Identifier: Apache-2.0
//
// TFRecord files (u64 length, its masked CRC-32C, the bytes, theirs) and the tf.train.Example messages in them. Any
// bytes are fine: what is wrong is said, nothing is allocated that a file could not fill.
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

// A record: its number, where its bytes begin, the bytes, which are gone after the call.
using VisitRecord = std::function<Status(uint64_t number, uint64_t offset, std::span<const uint8_t> bytes)>;

// Every record of a file, in order. `inflated` gets the whole file if it is gzip data; offsets are then into that.
// MT_CORRUPT, MT_IO, or what `visit` returns.
Status readRecords(const std::string &path, std::shared_ptr<const std::vector<uint8_t>> &inflated,
                   const VisitRecord &visit);
// Of a file in memory; `where` for messages.
Status readRecords(std::span<const uint8_t> file, const std::string &where, const VisitRecord &visit);

// A named list of values of one kind.
struct Feature {
  enum class Kind { None, Bytes, Floats, Ints };
  std::string_view name;
  Kind kind = Kind::None;
  std::vector<std::span<const uint8_t>> bytes;
  std::vector<float> floats;
  std::vector<int64_t> ints;

  size_t count() const { return bytes.size() + floats.size() + ints.size(); }
};

// The features of a message, which views into it. A name that is there twice counts as it stands last. MT_CORRUPT.
Status parseExample(std::span<const uint8_t> message, std::vector<Feature> &features);

} // namespace mtrun
