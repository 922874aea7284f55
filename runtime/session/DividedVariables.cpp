// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/DividedVariables.h"

#include "runtime/device/SharedBytes.h"

#include <algorithm>
#include <new>

namespace mtrun {

bool DividedVariables::any() const {
  return std::ranges::any_of(layout_.optimizer.variables, [](const Parts &parts) { return !parts.empty(); });
}

// Process 0 has room for whole variables while it writes them, no longer.
void DividedVariables::change() {
  if (collected_)
    whole_.clear();
  collected_ = false;
}

DividedVariables::Place DividedVariables::placeOf(uint32_t index, size_t device) const {
  const Parts &parts = layout_.optimizer.variables[index];
  uint64_t elementBytes = plan->variables()->Get(index)->size() / static_cast<uint64_t>(parts.back());
  return {static_cast<uint64_t>(parts[device]) * elementBytes,
          static_cast<uint64_t>(parts[device + 1] - parts[device]) * elementBytes};
}

DividedVariables::Bytes DividedVariables::own(uint32_t index, int device) const {
  auto local = static_cast<size_t>(device);
  return {memory_.variables[local] + memory_.places[local].offsets[index],
          placeOf(index, static_cast<size_t>(layout_.first) + local).bytes};
}

DividedVariables::Bytes DividedVariables::partOf(uint32_t index, int device, Bytes bytes) {
  if (!layout_.optimizer.divides(index))
    return bytes;
  collected_ = false;
  Place place = placeOf(index, static_cast<size_t>(layout_.first + device));
  return bytes.subspan(place.begin, place.bytes);
}

void DividedVariables::copyOwn(uint32_t index) const {
  whole_.resize(layout_.optimizer.variables.size());
  whole_[index].resize(plan->variables()->Get(index)->size());
  for (size_t d = 0; d < memory_.variables.size(); ++d)
    std::ranges::copy(own(index, static_cast<int>(d)),
                      whole_[index].data() + placeOf(index, static_cast<size_t>(layout_.first) + d).begin);
}

DividedVariables::Bytes DividedVariables::whole(uint32_t index) const {
  bool allHere = memory_.variables.size() == layout_.shards.size();
  if (allHere)
    copyOwn(index);
  return allHere || collected_ ? Bytes(whole_[index]) : Bytes();
}

Status DividedVariables::collect(Transport &transport, ProcessGroup &group, bool everywhere) try {
  bool first = group.process() == 0;
  std::vector<SharedPart> parts;
  for (uint32_t v = 0; v < layout_.optimizer.variables.size(); ++v) {
    if (!layout_.optimizer.divides(v))
      continue;
    if (first)
      copyOwn(v);
    for (int process = 1; process < group.processes(); ++process) {
      Place place = placeOf(v, static_cast<size_t>(process));
      if (first)
        parts.push_back({process, whole_[v].data() + place.begin, place.bytes});
      else if (process == group.process())
        parts.push_back({process, const_cast<std::byte *>(own(v, 0).data()), place.bytes});
    }
  }
  Status status = collectParts(transport, group, parts);
  whole_.resize(layout_.optimizer.variables.size());
  for (uint32_t v = 0; everywhere && status.ok() && v < whole_.size(); ++v)
    if (layout_.optimizer.divides(v))
      status = shareBytes(transport, group, whole_[v], 0);
  collected_ = (first || everywhere) && status.ok();
  return status;
} catch (const std::bad_alloc &) {
  return group.lose("process " + std::to_string(group.process()) +
                        " has too little memory for the whole variables of the optimizer",
                    MT_NO_MEMORY);
}

} // namespace mtrun
