// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Column.h"
#include "runtime/data/stored_values.h"

#include <cmath>
#include <cstring>

namespace mtrun {

std::string shapeText(const mtrun_tensor_info &info) {
  std::string text = std::string(mt_dtype_name(info.dtype)) + " [";
  for (int32_t i = 0; i < info.rank; ++i)
    text += (i ? ", " : "") + (info.shape[i] < 0 ? std::string("?") : std::to_string(info.shape[i]));
  return text + "]";
}

static std::string shapeText(const Field &field) {
  std::string text = std::string(storedName(field.type)) + " [";
  for (size_t i = 0; i < field.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(field.shape[i]);
  return text + "]";
}

// Returns the elements of a sample: the product of all axes after the batch axis. It fits, because plans are verified.
static uint64_t sampleElements(const mtrun_tensor_info &info) {
  uint64_t elements = 1;
  for (int32_t i = 1; i < info.rank; ++i)
    elements *= static_cast<uint64_t>(info.shape[i]);
  return elements;
}

static bool sameType(Stored stored, mt_dtype dtype) {
  switch (dtype) {
  case MT_F32:
    return stored == Stored::F32;
  case MT_F64:
    return stored == Stored::F64;
  case MT_I32:
    return stored == Stored::I32;
  case MT_I64:
    return stored == Stored::I64;
  case MT_BOOL:
    return stored == Stored::Bool;
  case MT_U8:
    return stored == Stored::U8;
  case MT_BF16:
  case MT_F16:
    break; // no tensor of a caller has these types
  }
  return false;
}

void Column::openScaling(const DataSpec &spec) {
  scale_ = spec.scale.value_or(1);
  divisor_ = spec.divisor;
  mean_ = spec.mean;
  deviation_ = spec.deviation;
  reversed_ = spec.reversed;
  channels_ = std::max<uint64_t>(std::max(mean_.size(), deviation_.size()), 1);
}

Status Column::checkReversed(const mtrun_tensor_info &entry, uint64_t channels) const {
  if (!reversed_ || channels == 3)
    return {};
  return {MT_INVALID, "data: preprocess=caffe takes red, green and blue to blue, green and red: expected 3 channels on "
                      "the last axis of input \"" +
                          name + "\": " + shapeText(entry) + ", found " + std::to_string(channels)};
}

Status Column::openPictures(const mtrun_tensor_info &entry, const DataSpec &spec) {
  PictureShape shape = {spec.height, spec.width, 1};
  uint64_t pixels = uint64_t(spec.height) * spec.width;
  bool sized = pixels > 0 && (elements == pixels || elements == 3 * pixels);
  if (sized)
    shape.channels = static_cast<uint32_t>(elements / pixels);
  else if (pixels == 0 && (entry.rank == 3 || entry.rank == 4) && entry.shape[1] <= 65500 && entry.shape[2] <= 65500)
    shape = {static_cast<uint32_t>(entry.shape[1]), static_cast<uint32_t>(entry.shape[2]),
             entry.rank == 4 ? static_cast<uint32_t>(std::min<int64_t>(entry.shape[3], 4)) : 1};
  else
    shape.channels = 0;
  if ((dtype != MT_F32 && dtype != MT_F64) || (shape.channels != 1 && shape.channels != 3) || role != MTRUN_INPUT)
    return {MT_INVALID, field.where +
                            ": pictures need an input of floats [?, height, width, 1 or 3], or size=HxW of its "
                            "elements; found \"" +
                            name + "\": " + shapeText(entry)};
  for (size_t numbers : {spec.mean.size(), spec.deviation.size()})
    if (numbers > 1 && numbers != shape.channels)
      return {MT_INVALID, "data: expected mean and std of 1 or " + std::to_string(shape.channels) +
                              " channels for input \"" + name + "\": " + shapeText(entry) + ", found " +
                              std::to_string(numbers)};
  scales_ = spec.scale || !spec.mean.empty() || !spec.deviation.empty();
  openScaling(spec);
  if (Status s = checkReversed(entry, shape.channels); !s.ok())
    return s;
  auto sizedPictures = std::make_shared<Pictures>(*field.pictures);
  if (Status s = sizedPictures->size(shape, spec); !s.ok())
    return s;
  field.pictures = std::move(sizedPictures);
  return {};
}

Status Column::make(int64_t sample, const Draw &draw, void *out) const {
  static thread_local std::vector<float> narrow;
  float *to = static_cast<float *>(out);
  if (dtype == MT_F64) {
    narrow.resize(elements);
    to = narrow.data();
  }
  if (Status s = field.pictures->read(sample, draw, to); !s.ok())
    return s;
  if (reversed_)
    for (uint64_t i = 0; i + 2 < elements; i += 3)
      std::swap(to[i], to[i + 2]);
  if (scales_ && dtype == MT_F32)
    for (uint64_t i = 0; i < elements; ++i)
      to[i] = static_cast<float>(scaled(to[i], i % channels_));
  if (dtype == MT_F64)
    for (uint64_t i = 0; i < elements; ++i)
      static_cast<double *>(out)[i] = scales_ ? scaled(to[i], i % channels_) : double(to[i]);
  return {};
}

Status Column::open(Field from, const mtrun_tensor_info &entry, const DataSpec &spec) {
  field = std::move(from);
  name = entry.name;
  role = entry.role;
  dtype = entry.dtype;
  elements = sampleElements(entry);
  rowBytes = elements * mt_dtype_size(dtype);
  if (field.pictures)
    return openPictures(entry, spec);
  std::string what = role == MTRUN_INPUT ? "input" : role == MTRUN_TARGET ? "target" : "sample weight";
  bool floats = dtype == MT_F32 || dtype == MT_F64, narrow = dtype == MT_BOOL || dtype == MT_U8;
  oneHot_ = role == MTRUN_TARGET && floats && !isFloat(field.type) && entry.rank == 2 && elements > 1 &&
            field.elements() == 1;
  if (oneHot_) {
    plain_ = false;
    return {};
  }
  bool types = floats || (narrow ? storedSize(field.type) == 1 && field.type != Stored::I8 : !isFloat(field.type));
  limitTo(std::nullopt);
  if (!types || field.elements() != elements)
    return {MT_INVALID, field.where + ": samples of " + shapeText(field) + " do not fit " + what + " \"" + name +
                            "\": " + shapeText(entry)};
  scales_ = floats && role == MTRUN_INPUT && (spec.scale || !spec.mean.empty() || !spec.deviation.empty());
  plain_ = sameType(field.type, dtype) && !scales_;
  if (!scales_ && !(floats && field.type == Stored::U8))
    return {};
  if (scales_)
    openScaling(spec);
  uint64_t last = entry.rank > 1 ? static_cast<uint64_t>(entry.shape[entry.rank - 1]) : 1;
  for (size_t numbers : {mean_.size(), deviation_.size()})
    if (numbers > 1 && numbers != last)
      return {MT_INVALID, "data: expected mean and std of 1 or " + std::to_string(last) + " channels for input \"" +
                              name + "\": " + shapeText(entry) + ", found " + std::to_string(numbers)};
  if (Status s = checkReversed(entry, last); !s.ok())
    return s;
  if (field.type == Stored::U8 && dtype == MT_F32)
    openTables();
  return {};
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void line(const uint8_t *__restrict from, uint64_t count, float factor,
                                                     float rest, float *__restrict to) {
  for (uint64_t i = 0; i < count; ++i)
    to[i] = __builtin_fmaf(float(from[i]), factor, float(from[i]) * rest);
}
static bool drawsLines() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
static void line(const uint8_t *, uint64_t, float, float, float *) {}
static bool drawsLines() { return false; }
#endif

void Column::openTables() {
  tables_.resize(channels_);
  for (uint64_t c = 0; c < channels_; ++c)
    for (int i = 0; i < 256; ++i)
      tables_[c][static_cast<size_t>(i)] = static_cast<float>(scales_ ? scaled(i, c) : i);
  // A single table is usually a line through 0: i times a factor, which is split into two floats. With wide vectors
  // this is faster than a table lookup. Both forms are compared bit for bit below; the line is used only if all 256
  // values are equal.
  double factor = scaled(1, 0);
  factor_ = static_cast<float>(factor);
  rest_ = static_cast<float>(factor - double(factor_));
  line_ = tables_.size() == 1 && !reversed_ && drawsLines();
  for (int i = 0; i < 256 && line_; ++i)
    line_ = std::fma(float(i), factor_, float(i) * rest_) == tables_[0][static_cast<size_t>(i)];
}

double Column::scaled(double value, uint64_t channel) const {
  value = value * scale_ / divisor_;
  if (!mean_.empty())
    value -= mean_[mean_.size() > 1 ? channel : 0];
  if (!deviation_.empty())
    value /= deviation_[deviation_.size() > 1 ? channel : 0];
  return value;
}

void Column::gatherRow(const uint8_t *from, void *out) const {
  uint64_t channels = channels_, depth = reversed_ ? 3 : channels; // checked by open()
  auto put = [&](auto *to) {
    using To = std::remove_pointer_t<decltype(to)>;
    forEach(field.type, from, elements, [&](uint64_t i, auto value) {
      uint64_t at = reversed_ ? i - i % depth + (depth - 1 - i % depth) : i;
      if (scales_)
        to[at] = static_cast<To>(scaled(static_cast<double>(value), at % channels));
      else
        to[at] = static_cast<To>(value);
    });
  };
  switch (dtype) {
  case MT_F32:
    return put(static_cast<float *>(out));
  case MT_F64:
    return put(static_cast<double *>(out));
  case MT_I32:
    return put(static_cast<int32_t *>(out));
  case MT_I64:
    return put(static_cast<int64_t *>(out));
  case MT_BOOL:
    return forEach(field.type, from, elements,
                   [&](uint64_t i, auto value) { static_cast<uint8_t *>(out)[i] = value != 0; });
  case MT_U8:
    return put(static_cast<uint8_t *>(out));
  case MT_BF16:
  case MT_F16:
    break; // no tensor of a caller has these types
  }
}

void Column::convert(const uint8_t *from, void *out) const {
  auto *to = static_cast<float *>(out);
  if (plain_)
    memcpy(out, from, rowBytes);
  else if (oneHot_) {
    memset(out, 0, rowBytes);
    forEach(field.type, from, 1, [&](uint64_t, auto label) { // below `elements`, checked before
      if (dtype == MT_F32)
        to[static_cast<size_t>(label)] = 1;
      else
        static_cast<double *>(out)[static_cast<size_t>(label)] = 1;
    });
  } else if (line_) {
    line(from, elements, factor_, rest_, to);
  } else if (tables_.size() == 1 && !reversed_) { // the common case for pictures
    const std::array<float, 256> &table = tables_[0];
    for (uint64_t e = 0; e < elements; ++e)
      to[e] = table[from[e]];
  } else if (!tables_.empty() && !reversed_) {
    for (uint64_t e = 0; e < elements; ++e)
      to[e] = tables_[e % channels_][from[e]];
  } else {
    gatherRow(from, out);
  }
}

void Column::gather(const int64_t *samples, int64_t count, void *out) const {
  for (int64_t i = 0; i < count; ++i) {
    if (i + 2 < count) { // rows of shuffled samples are not adjacent in memory
      const uint8_t *later = at(samples[i + 2]);
      for (uint64_t place = 0; place < field.stride && place < 4096; place += 64)
        __builtin_prefetch(later + place);
    }
    convert(at(samples[i]), static_cast<std::byte *>(out) + static_cast<uint64_t>(i) * rowBytes);
  }
}

} // namespace mtrun
