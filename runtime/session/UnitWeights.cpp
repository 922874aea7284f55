// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/UnitWeights.h"

#include "runtime/plan/Check.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace mtrun {

namespace fb = ::mt::plan;

uint64_t UnitWeights::bytes(const Plan &plan) {
  uint64_t bytes = 0;
  for (const fb::Program *program : Each(plan.tables().programs()))
    for (const fb::SignatureEntry *entry : Each(program->signature()))
      if (entry->optional())
        bytes = std::max(bytes, entry->row_bytes() * plan.batch());
  return bytes * std::size(decltype(lists_){});
}

// Fills `bytes` with the number 1 of a type.
static void fillWithOnes(fb::DType type, std::vector<std::byte> &bytes) {
  auto fill = [&](auto one) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(one))
      std::memcpy(bytes.data() + at, &one, sizeof(one));
  };
  switch (type) {
  case fb::DType::F32:
    return fill(1.0f);
  case fb::DType::F64:
    return fill(1.0);
  case fb::DType::I32:
    return fill(int32_t{1});
  case fb::DType::I64:
    return fill(int64_t{1});
  case fb::DType::Bool:
  case fb::DType::U8:
    return fill(uint8_t{1});
  case fb::DType::BF16:
  case fb::DType::F16:
    return; // signatures never have these types
  }
}

void UnitWeights::make(const Plan &plan) {
  for (const fb::Program *program : Each(plan.tables().programs()))
    for (const fb::SignatureEntry *entry : Each(program->signature())) {
      auto &bytes = lists_[static_cast<size_t>(entry->dtype())];
      size_t size = entry->row_bytes() * plan.batch();
      if (!entry->optional() || bytes.size() >= size)
        continue;
      bytes.resize(size);
      fillWithOnes(entry->dtype(), bytes);
    }
}

} // namespace mtrun
