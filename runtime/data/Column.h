// SPDX-License-Identifier: Apache-2.0
//
// Converts a field of the data to an entry of a program's signature: converts types and scales, batch by batch.
#pragma once

#include "runtime/data/Pictures.h"
#include "runtime/data/Table.h"

#include <array>
#include <optional>

namespace mtrun {

struct Column {
  Field field;
  std::string name; // name of the signature entry
  mtrun_role role = MTRUN_INPUT;
  mt_dtype dtype = MT_F32; // type that gather() writes
  uint64_t elements = 0;   // per sample
  uint64_t rowBytes = 0;   // per sample, as gather() writes it

  // Prepares for gather(). `spec` has the scaling of float inputs; other entries are not scaled. Integer labels for a
  // float target [?, C] become one-hot rows. MT_INVALID: the types or sizes do not match.
  Status open(Field from, const mtrun_tensor_info &entry, const DataSpec &spec);

  // Returns true if samples are computed on demand by make(); false if they are in memory, for gather().
  bool made() const { return field.pictures != nullptr; }
  // Writes a sample. Any thread may call it; the bits do not depend on the thread. MT_CORRUPT, MT_IO, MT_INVALID,
  // MT_NO_MEMORY.
  Status make(int64_t sample, const Draw &draw, void *out) const;

  // Returns true if the bytes of the file need no conversion.
  bool plain() const { return plain_; }
  // Converts the sample at `from`, which has the format of the field.
  void convert(const uint8_t *from, void *out) const;
  // Writes these samples one after another.
  void gather(const int64_t *samples, int64_t count, void *out) const;

  // Returns true if the target has integer labels. The field `labels` has their classes.
  bool hasLabels() const { return role == MTRUN_TARGET && (oneHot_ || dtype == MT_I32 || dtype == MT_I64); }
  // Returns the number of classes, which is the limit of labels; nullopt if the entry does not determine it.
  std::optional<int64_t> classes() const { return oneHot_ ? std::optional(int64_t(elements)) : std::nullopt; }
  // Sets the limit of whole numbers: they must be in [0, limit), or without a limit fit the entry's type.
  void limitTo(std::optional<int64_t> limit);
  // Returns true if the field's type allows values that the model cannot use.
  bool limited() const { return limited_; }
  // MT_INVALID: sample `sample`, at `from` in the format of the field, has a value that the model cannot use.
  Status checkIntegers(const uint8_t *from, int64_t sample) const;
  // Returns the first value of a sample of an integer field, as in the file.
  int64_t label(int64_t sample) const;
  // Returns true if the file may have floats that are not finite, and the model reads them as floats.
  bool mayBeNan() const { return !made() && isFloat(field.type) && (dtype == MT_F32 || dtype == MT_F64); }
  // MT_INVALID if sample `sample`, at `row` as gather() writes it, has a value that is not finite; the message names
  // it.
  Status checkFinite(const void *row, int64_t sample) const;
  // Returns the class of a sample: its label, the index of the 1 in a one-hot row, or a target's only value, 0 or 1.
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
  int64_t least_ = 0, most_ = 0; // limits of integers
  bool plain_ = true;            // the bytes need no conversion
  bool oneHot_ = false;
  bool scales_ = false, reversed_ = false;
  double scale_ = 1, divisor_ = 1;
  std::vector<double> mean_, deviation_; // one value, or one per channel
  uint64_t channels_ = 1;
  bool line_ = false; // tables_[0][i] is fma(i, factor_, i * rest_) for every i
  float factor_ = 1, rest_ = 0;
  std::vector<std::array<float, 256>> tables_; // conversion from bytes to f32: one table, or one per channel
};

// Returns a text such as "f32 [?, 2, 3]".
std::string shapeText(const mtrun_tensor_info &info);

} // namespace mtrun
