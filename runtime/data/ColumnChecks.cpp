// SPDX-License-Identifier: Apache-2.0
//
// Checks the values of a column: classes and ids are below a limit, and floats are finite.
#include "runtime/data/Column.h"
#include "runtime/data/stored_values.h"
#include "runtime/support/number_range.h"

#include <cmath>

namespace mtrun {

int64_t Column::label(int64_t sample) const {
  int64_t label = 0;
  forEach(field.type, at(sample), 1, [&](uint64_t, auto value) { label = static_cast<int64_t>(value); });
  return label;
}

std::optional<int64_t> Column::classOf(int64_t sample) const {
  uint64_t count = field.elements(), ones = 0;
  bool digits = true;
  int64_t place = 0, label = 0;
  forEach(field.type, at(sample), count, [&](uint64_t i, auto value) {
    bool one = value == 1;
    digits &= one || value == 0;
    ones += one;
    place = one ? static_cast<int64_t>(i) : place;
    label = digits ? one : isFloat(field.type) ? 0 : static_cast<int64_t>(value);
  });
  if (count == 1)
    return digits || hasLabels() ? std::optional(label) : std::nullopt;
  bool row = field.shape.size() == 1 && digits && ones == 1;
  return row ? std::optional(place) : std::nullopt;
}

// Returns the range of a stored type.
static std::pair<int64_t, int64_t> rangeOf(Stored type) {
  switch (type) {
  case Stored::U8:
  case Stored::Bool:
    return {0, UINT8_MAX};
  case Stored::I8:
    return {INT8_MIN, INT8_MAX};
  case Stored::U16:
    return {0, UINT16_MAX};
  case Stored::I16:
    return {INT16_MIN, INT16_MAX};
  case Stored::U32:
    return {0, UINT32_MAX};
  case Stored::I32:
    return {INT32_MIN, INT32_MAX};
  default:
    return {INT64_MIN, INT64_MAX};
  }
}

void Column::limitTo(std::optional<int64_t> limit) {
  bool whole = dtype == MT_I32 || dtype == MT_I64 || oneHot_;
  bool cast = limit && !whole && !scales_; // ids that the model reads as floats and converts to integers
  least_ = limit ? 0 : dtype == MT_I32 ? INT32_MIN : INT64_MIN;
  most_ = limit ? *limit - 1 : dtype == MT_I32 ? INT32_MAX : INT64_MAX;
  auto [least, most] = rangeOf(field.type);
  limited_ = !made() && (isFloat(field.type) ? cast : (whole || cast) && (least < least_ || most > most_));
}

Status Column::checkIntegers(const uint8_t *from, int64_t sample) const {
  std::string wrong; // the first invalid value
  forEach(field.type, from, field.elements(), [&](uint64_t, auto value) {
    if (wrong.empty() && !isWithin(value, least_, most_))
      wrong = numberText(value);
  });
  if (wrong.empty())
    return {};
  std::string what = hasLabels() ? " has label " + wrong : " has " + wrong + " for input \"" + name + "\"";
  return {MT_INVALID, field.where + ": sample " + std::to_string(sample) + what + ", expected " +
                          std::to_string(least_) + " to " + std::to_string(most_)};
}

// Returns the index of the first value whose exponent bits are all set, or `count`.
template <typename Word> static uint64_t firstNotFinite(const void *values, uint64_t count, Word exponent) {
  constexpr uint64_t block = 256; // a block is checked without branches, so the loop is vectorized
  const auto *bytes = static_cast<const uint8_t *>(values);
  for (uint64_t begin = 0; begin < count; begin += block) {
    uint64_t end = std::min(begin + block, count);
    Word bad = 0;
    for (uint64_t i = begin; i < end; ++i)
      bad |= (load<Word>(bytes, i) & exponent) == exponent;
    for (uint64_t i = begin; bad && i < end; ++i)
      if ((load<Word>(bytes, i) & exponent) == exponent)
        return i;
  }
  return count;
}

Status Column::checkFinite(const void *row, int64_t sample) const {
  bool narrow = dtype == MT_F32;
  uint64_t at = narrow ? firstNotFinite<uint32_t>(row, elements, 0x7f800000u)
                       : firstNotFinite<uint64_t>(row, elements, 0x7ff0000000000000u);
  if (at == elements)
    return {};
  const auto *bytes = static_cast<const uint8_t *>(row);
  double value = narrow ? double(load<float>(bytes, at)) : load<double>(bytes, at);
  return {MT_INVALID, field.where + ": expected finite values of \"" + name + "\", found " +
                          (std::isnan(value) ? "not a number"
                           : value > 0       ? "infinity"
                                             : "minus infinity") +
                          " in sample " + std::to_string(sample) +
                          (elements > 1 ? ", element " + std::to_string(at) + " of " + std::to_string(elements) : "") +
                          "; --allow-nan (nan=yes) lets it pass"};
}

} // namespace mtrun
