// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Source.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace mtrun {

constexpr int32_t maxFields = 1024, maxFieldRank = 32;

Source::Source(const mtrun_source &source, const Table &table)
    : source_(source), threads_(source.samples < 0 ? 1 : std::clamp(source.threads, 1, 256)) {
  for (const Field &field : table.fields)
    names_ += (names_.empty() ? "\"" : ", \"") + field.name + "\"";
  source_.fields = nullptr; // the caller may free its memory
  source_.field_count = 0;
}

Status Source::read(mtrun_request &request, int64_t &rows) const {
  char message[256] = "";
  request.message = message;
  request.message_size = sizeof message;
  rows = source_.read(source_.user, &request);
  request.message = nullptr;
  if (rows == request.rows || (inOrder() && rows >= 0 && rows < request.rows))
    return {};
  char where[128];
  if (inOrder())
    snprintf(where, sizeof where, " at sample %" PRId64 " of pass %" PRId64, request.first, request.pass);
  else
    snprintf(where, sizeof where, " at sample %" PRId64, request.samples[0]);
  std::string source = "the source of " + names_ + where;
  if (rows < 0) {
    message[sizeof message - 1] = '\0';
    return {MT_IO, source + ": " + (message[0] ? std::string(message) : "failed with " + std::to_string(rows))};
  }
  return {MT_INVALID, source + ": expected " + (inOrder() ? "at most " : "") + std::to_string(request.rows) +
                          " samples, found " + std::to_string(rows)};
}

static bool storedAs(int32_t dtype, Stored &type) {
  static constexpr std::pair<mt_dtype, Stored> types[] = {
      {MT_F32, Stored::F32}, {MT_F64, Stored::F64},   {MT_F16, Stored::F16}, {MT_I32, Stored::I32},
      {MT_I64, Stored::I64}, {MT_BOOL, Stored::Bool}, {MT_U8, Stored::U8}};
  for (auto [of, stored] : types)
    if (of == dtype)
      return type = stored, true;
  return false;
}

static Status openField(const mtrun_field &from, int64_t samples, bool arrays, Field &field) {
  if (!from.name)
    return {MT_INVALID, "expected a name of each field, found NULL"};
  field.name = from.name;
  field.where = std::string(arrays ? "array" : "source") + " \"" + from.name + "\"";
  field.named = true;
  field.samples = static_cast<uint64_t>(std::max<int64_t>(samples, 0));
  int32_t dtype; // the caller may have written any number, which would be undefined behaviour in an enumeration
  static_assert(sizeof dtype == sizeof from.dtype);
  std::memcpy(&dtype, &from.dtype, sizeof dtype);
  if (!storedAs(dtype, field.type))
    return {MT_INVALID, field.where + ": expected a dtype of mt.h, found " + std::to_string(dtype)};
  if (from.rank < 0 || from.rank > maxFieldRank || (from.rank > 0 && !from.shape))
    return {MT_INVALID, field.where + ": expected the shape of a sample of 0 to " + std::to_string(maxFieldRank) +
                            " axes, found " + (from.rank > 0 && !from.shape ? "NULL" : std::to_string(from.rank))};
  uint64_t bytes = storedSize(field.type);
  for (int32_t i = 0; i < from.rank; ++i) {
    if (from.shape[i] < 1 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(from.shape[i]), &bytes) ||
        bytes > uint64_t(1) << 46)
      return {MT_INVALID, field.where + ": expected axes of at least 1 and samples of at most 2^46 bytes, found " +
                              std::to_string(from.shape[i])};
    field.shape.push_back(static_cast<uint64_t>(from.shape[i]));
  }
  field.stride = bytes;
  if (!arrays)
    return {};
  if (!from.data)
    return {MT_INVALID, field.where + ": expected the samples, found NULL"};
  // NumPy's broadcast views have a stride of 0: all samples are the same memory.
  bool dense = from.stride == MTRUN_DENSE || (from.stride == 0 && samples <= 1);
  if (!dense && (from.stride < 0 || static_cast<uint64_t>(from.stride) < bytes))
    return {MT_INVALID, field.where + ": expected a stride of MTRUN_DENSE or at least " + std::to_string(bytes) +
                            " bytes, found " + std::to_string(from.stride)};
  if (!dense)
    field.stride = static_cast<uint64_t>(from.stride);
  uint64_t all = 0;
  if (__builtin_mul_overflow(field.stride, field.samples, &all) || all > uint64_t(1) << 62)
    return {MT_INVALID, field.where + ": expected samples of less than 2^62 bytes together, found " +
                            std::to_string(samples) + " of " + std::to_string(field.stride)};
  field.bytes = {std::shared_ptr<const uint8_t>(), static_cast<const uint8_t *>(from.data)}; // owned by the caller
  return {};
}

Status openFields(const mtrun_field *fields, int32_t count, int64_t samples, bool arrays, Table &table) {
  if (count < 1 || count > maxFields || !fields)
    return {MT_INVALID, "expected 1 to " + std::to_string(maxFields) + " fields, found " +
                            (fields ? std::to_string(count) : "NULL")};
  for (int32_t i = 0; i < count; ++i) {
    Field field;
    if (Status s = openField(fields[i], samples, arrays, field); !s.ok())
      return s;
    for (const Field &before : table.fields)
      if (before.name == field.name)
        return {MT_INVALID, "expected fields of different names, found two of \"" + field.name + "\""};
    table.fields.push_back(std::move(field));
  }
  return {};
}

} // namespace mtrun
