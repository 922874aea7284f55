// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/FitLength.h"

#include "runtime/plan/Check.h"
#include "runtime/plan/Lengths.h"

#include <algorithm>
#include <cstring>

namespace mtrun {

namespace fb = ::mt::plan;

// Returns true if the shape of a sample differs from the entry's only in the first axis.
static bool hasOtherLength(const Field &field, const fb::SignatureEntry &entry) {
  const auto &shape = *entry.shape();
  if (field.shape.size() + 1 != shape.size() || field.shape[0] == static_cast<uint64_t>(shape.Get(1)))
    return false;
  for (uint32_t axis = 2; axis < shape.size(); ++axis)
    if (field.shape[axis - 1] != static_cast<uint64_t>(shape.Get(axis)))
      return false;
  return true;
}

uint64_t usedPositions(const Field &field, const uint8_t *sample) {
  uint64_t positions = field.shape.empty() ? 1 : field.shape[0];
  uint64_t each = field.elements() / std::max<uint64_t>(positions, 1) * storedSize(field.type),
           bytes = positions * each;
  while (bytes > 0 && sample[bytes - 1] == 0)
    --bytes;
  return bytes ? (bytes + each - 1) / each : 0;
}

Status fitLength(const Plan &plan, const char *program, uint32_t index, Field &field) {
  const fb::SignatureEntry &entry = *plan.program(program)->signature()->Get(index);
  if (!field.bytes || !hasLength(plan.tables(), program, index) || !hasOtherLength(field, entry))
    return {};
  uint64_t found = field.shape[0], length = static_cast<uint64_t>(entry.shape()->Get(1));
  uint64_t each = found ? field.elements() / found * storedSize(field.type) : 0, rowBytes, bytes;
  if (each == 0 || !multiplyAdd(length, each, 0, rowBytes) || !multiplyAdd(rowBytes, field.samples, 0, bytes))
    return {};
  std::vector<uint8_t> fitted(bytes);
  for (uint64_t i = 0; i < field.samples; ++i) {
    const uint8_t *sample = field.bytes.get() + i * field.stride;
    uint64_t used = saysLength(plan.tables(), entry) ? usedPositions(field, sample) : 0;
    if (used > length)
      return {MT_INVALID, field.where + ": sample " + std::to_string(i) + ": expected at most " +
                              std::to_string(length) + " positions for \"" + entry.name()->str() +
                              "\", the largest length of the plan, found " + std::to_string(used) +
                              "; compile the model with a larger length (mtc compile --lengths)"};
    memcpy(fitted.data() + i * rowBytes, sample, std::min(rowBytes, found * each));
  }
  field.bytes = share(std::move(fitted));
  field.stride = rowBytes;
  field.shape[0] = length;
  return {};
}

} // namespace mtrun
