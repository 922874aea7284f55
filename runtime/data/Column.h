// SPDX-License-Identifier: Apache-2.0
//
// A field of the data as an entry of a program's signature takes it: another type, scaled, batch by batch.
#pragma once

#include "runtime/data/Pictures.h"
#include "runtime/data/Table.h"

#include <array>
#include <optional>

namespace mtrun {

struct Column {
  Field field;
  std::string name; // of the signature entry
  mtrun_role role = MTRUN_INPUT;
  mt_dtype dtype = MT_F32; // of what gather writes
  uint64_t elements = 0;   // a sample
  uint64_t rowBytes = 0;   // a sample, as gathered

  // Makes ready for gather. `spec` says how inputs of floats are scaled; nothing else is. Integer labels for a target
  // of floats [?, C] are made one-hot. MT_INVALID: the types or sizes do not go together.
  Status open(Field from, const mtrun_tensor_info &entry, const DataSpec &spec);

  // Whether samples are made when they are asked for, by make(); else they are in memory, for gather().
  bool made() const { return field.pictures != nullptr; }
  // Writes a sample. Any thread; the same bits whichever. MT_CORRUPT, MT_IO, MT_INVALID, MT_NO_MEMORY.
  Status make(int64_t sample, const Draw &draw, void *out) const;

  // Whether the file's bytes are what the model takes.
  bool plain() const { return plain_; }
  // Writes a sample that lies at `from` as the field has it.
  void convert(const uint8_t *from, void *out) const;
  // Writes these samples one after the other.
  void gather(const int64_t *samples, int64_t count, void *out) const;

  // Whether the file has integers for a target; they are the classes of `labels`.
  bool hasLabels() const { return role == MTRUN_TARGET && (oneHot_ || dtype == MT_I32 || dtype == MT_I64); }
  // Labels must be below; none if the entry does not tell.
  std::optional<int64_t> classes() const { return oneHot_ ? std::optional(int64_t(elements)) : std::nullopt; }
  // Whole numbers must be below `limit` and not below 0; without one they must fit the entry's type.
  void limitTo(std::optional<int64_t> limit);
  // Whether a value that the field can hold may be one that the model cannot take.
  bool limited() const { return limited_; }
  // MT_INVALID: one of sample `sample`, which lies at `from` as the field has it, is such a value.
  Status checkIntegers(const uint8_t *from, int64_t sample) const;
  // The first of a sample, as the file has it; of a field of integers.
  int64_t label(int64_t sample) const;
  // Whether the file has values that may be no numbers, and the model takes them.
  bool mayBeNan() const { return !made() && isFloat(field.type) && (dtype == MT_F32 || dtype == MT_F64); }
  // MT_INVALID names the first value that is not finite of sample `sample`, which lies at `row` as it was gathered.
  Status checkFinite(const void *row, int64_t sample) const;
  // The class of a sample: its label, the index of the one in a one-hot row, or the 0 or 1 that is all of a target.
  std::optional<int64_t> classOf(int64_t sample) const;
  const uint8_t *at(int64_t sample) const { return field.bytes.get() + static_cast<uint64_t>(sample) * field.stride; }

private:
  Status openPictures(const mtrun_tensor_info &entry, const DataSpec &spec);
  void openScaling(const DataSpec &spec);
  Status checkReversed(const mtrun_tensor_info &entry, uint64_t channels) const;
  double scaled(double value, uint64_t channel) const;
  void openTables();
  void gatherRow(const uint8_t *from, void *out) const;

  bool limited_ = false;
  int64_t least_ = 0, most_ = 0; // of integers
  bool plain_ = true;            // the stored bytes are what is wanted
  bool oneHot_ = false;
  bool scales_ = false, reversed_ = false;
  double scale_ = 1, divisor_ = 1;
  std::vector<double> mean_, deviation_; // one, or one a channel
  uint64_t channels_ = 1;
  bool line_ = false; // tables_[0][i] is fma(i, factor_, i * rest_) for every i
  float factor_ = 1, rest_ = 0;
  std::vector<std::array<float, 256>> tables_; // of bytes to f32, one or one a channel
};

// "f32 [?, 2, 3]".
std::string shapeText(const mtrun_tensor_info &info);

} // namespace mtrun
