// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/LengthChoice.h"

#include "runtime/plan/Check.h"
#include "runtime/plan/Lengths.h"

#include <algorithm>
#include <cstring>

namespace mtrun {

namespace fb = ::mt::plan;

static uint64_t alignUp(uint64_t bytes) { return (bytes + 63) & ~uint64_t(63); }

// The plan has been verified, so lengths and rows are bounded.
uint64_t LengthChoice::bytes(const Plan &plan) {
  const fb::Plan &tables = plan.tables();
  uint64_t most = 0;
  for (uint32_t i = 0; i + 1 < count(tables.lengths()); ++i)
    for (const char *name : {"train_step", "eval_step", "predict"}) {
      int32_t index = programAt(*tables.lengths()->Get(i), name);
      const auto *signature = index < 0 ? nullptr : tables.programs()->Get(static_cast<uint32_t>(index))->signature();
      uint64_t bytes = 64;
      for (uint32_t e = 0; e < count(signature); ++e)
        if (hasLength(tables, name, e))
          bytes += alignUp(signature->Get(e)->row_bytes() * plan.batch());
      most = std::max(most, bytes);
    }
  return most;
}

LengthChoice::LengthChoice(const Plan &plan) : plan_(plan), room_(bytes(plan)), steps_(count(plan.tables().lengths())) {
  uint32_t entries = 0;
  for (const fb::Program *program : Each(plan.tables().programs()))
    entries = std::max(entries, count(program->signature()));
  chosen_.reserve(entries);
  outputs_.reserve(entries);
}

bool LengthChoice::has(std::string_view program) const {
  return programAt(*plan_.tables().lengths()->Get(0), program) >= 0;
}

namespace {

// Returns the number of positions of a row up to the last nonzero element; at least `least`. A row has `positions`
// positions of `each` elements.
template <typename T> uint64_t usedOf(const void *row, uint64_t positions, uint64_t each, uint64_t least) {
  const T *values = static_cast<const T *>(row);
  uint64_t at = positions * each;
  while (at > least * each && values[at - 1] == T(0))
    --at;
  return std::max((at + each - 1) / each, least);
}

template <typename T>
uint64_t longestOf(const void *tensor, int64_t n, uint64_t positions, uint64_t each, uint64_t least) {
  const T *rows = static_cast<const T *>(tensor);
  for (int64_t row = 0; row < n && least < positions; ++row)
    least = usedOf<T>(rows + static_cast<uint64_t>(row) * positions * each, positions, each, least);
  return least;
}

} // namespace

uint64_t LengthChoice::longest(const fb::Program &program, const void *const *tensors, int64_t n) const {
  uint64_t positions = plan_.tables().lengths()->Get(plan_.tables().lengths()->size() - 1)->length(), most = 0;
  for (uint32_t e = 0; e < count(program.signature()); ++e) {
    const fb::SignatureEntry &entry = *program.signature()->Get(e);
    if (!hasLength(plan_.tables(), program.name()->string_view(), e) || !saysLength(plan_.tables(), entry))
      continue;
    uint64_t each = entry.row_bytes() / elementBytes(entry.dtype()) / positions;
    switch (entry.dtype()) {
    case fb::DType::F32:
      most = longestOf<float>(tensors[e], n, positions, each, most);
      break;
    case fb::DType::F64:
      most = longestOf<double>(tensors[e], n, positions, each, most);
      break;
    case fb::DType::I32:
      most = longestOf<int32_t>(tensors[e], n, positions, each, most);
      break;
    case fb::DType::I64:
      most = longestOf<int64_t>(tensors[e], n, positions, each, most);
      break;
    case fb::DType::Bool:
    case fb::DType::U8:
      most = longestOf<uint8_t>(tensors[e], n, positions, each, most);
      break;
    case fb::DType::BF16:
    case fb::DType::F16:
      break; // signatures never have these types
    }
  }
  return most;
}

// Copies rows to the shorter length: a row of a shorter length is the beginning of the row of the largest length.
void LengthChoice::cut(const fb::Program &whole, const fb::Program &part, const void *const *tensors, int64_t n) {
  auto *place = reinterpret_cast<std::byte *>(alignUp(reinterpret_cast<uintptr_t>(room_.data())));
  chosen_.clear();
  for (uint32_t e = 0; e < count(part.signature()); ++e) {
    const fb::SignatureEntry &entry = *part.signature()->Get(e);
    uint64_t wholeBytes = whole.signature()->Get(e)->row_bytes(), bytes = entry.row_bytes();
    chosen_.push_back(tensors[e]);
    if (bytes == wholeBytes || !tensors[e])
      continue;
    chosen_.back() = place;
    auto *caller = static_cast<std::byte *>(const_cast<void *>(tensors[e]));
    if (entry.role() == fb::Role::Output)
      outputs_.push_back({place, caller, bytes, wholeBytes});
    for (int64_t row = 0; row < n && entry.role() != fb::Role::Output; ++row)
      memcpy(place + static_cast<uint64_t>(row) * bytes, caller + static_cast<uint64_t>(row) * wholeBytes, bytes);
    place += alignUp(bytes * plan_.batch());
  }
}

LengthChoice::Chosen LengthChoice::begin(std::string_view program, const void *const *tensors, int64_t n) {
  const auto &lengths = *plan_.tables().lengths();
  auto programs = [&](uint32_t length) { return static_cast<uint32_t>(programAt(*lengths.Get(length), program)); };
  uint32_t last = lengths.size() - 1, length = 0;
  const fb::Program &whole = *plan_.tables().programs()->Get(programs(last));
  uint64_t most = longest(whole, tensors, n);
  while (length < last && lengths.Get(length)->length() < most)
    ++length;
  ++steps_[length];
  rows_ = n;
  outputs_.clear();
  if (length == last)
    return {programs(last), tensors};
  cut(whole, *plan_.tables().programs()->Get(programs(length)), tensors, n);
  return {programs(length), chosen_.data()};
}

void LengthChoice::finish() {
  for (const Output &output : outputs_)
    for (int64_t row = 0; row < rows_; ++row) {
      std::byte *to = output.to + static_cast<uint64_t>(row) * output.toBytes;
      memcpy(to, output.from + static_cast<uint64_t>(row) * output.fromBytes, output.fromBytes);
      memset(to + output.fromBytes, 0, output.toBytes - output.fromBytes);
    }
  outputs_.clear();
}

} // namespace mtrun
