// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/SharedBytes.h"
#include "runtime/plan/Signature.h"
#include "runtime/session/Activities.h"
#include "runtime/session/SessionState.h"
#include "runtime/support/hash_text.h"

#include <numeric>

namespace mtrun {

int Session::process() const { return state_->processGroup ? state_->processGroup->process() : 0; }

int Session::processes() const { return state_->processGroup ? state_->processGroup->processes() : 1; }

Status Session::broadcast(std::string &bytes) {
  if (!health().ok() || !state_->processGroup)
    return health();
  return state_->processGroup->broadcast(bytes);
}

Status Session::gather(const std::string &own, std::vector<std::string> &all) {
  all.assign(state_->processGroup ? 0 : 1, own);
  if (!health().ok() || !state_->processGroup)
    return health();
  return state_->processGroup->gather(own, all);
}

bool Session::sharesBytes() const { return state_->transport != nullptr; }

Status Session::shareBytes(std::vector<std::byte> &bytes, int root) {
  return mtrun::shareBytes(*state_->transport, *state_->processGroup, bytes, root);
}

Status Session::gatherActivities(std::span<mtrun_activity> activities) {
  mtrun_activity own = {};
  own.shards = shards(process());
  own.read_bytes = state_->readBytes;
  own.pictures = state_->readPictures;
  return mtrun::gatherActivities(*state_->group, state_->processGroup.get(), own, activities);
}

Session::Rows Session::ownRows() const {
  auto shardRows = static_cast<int64_t>(state_->plan->shardRows());
  const DeviceLayout &layout = state_->layout;
  if (!state_->processGroup)
    return {0, static_cast<int64_t>(state_->plan->batch())};
  auto first = layout.shards.begin() + layout.first;
  return {std::accumulate(layout.shards.begin(), first, int64_t(0)) * shardRows, *first * shardRows};
}

bool Session::sharesOutputs() const { return state_->transport || !state_->processGroup; }

Status Session::agree(const std::string &lines) {
  if (!health().ok() || !state_->processGroup)
    return health();
  return state_->processGroup->agree(lines);
}

Status Session::compareTensors(std::string_view program, const void *const *tensors, int64_t n) {
  if (!state_->processGroup)
    return {};
  // Other processes may know a number of rows that is wrong here.
  std::string lines = "step: " + std::string(program) + " of " + std::to_string(n) + " samples";
  bool rows = n >= 1 && static_cast<uint64_t>(n) <= state_->plan->batch();
  size_t i = 0;
  for (const mtrun_tensor_info &entry : signatureOf(*state_->plan, program)) {
    const void *tensor = tensors[i++];
    if (entry.role == MTRUN_OUTPUT || !rows)
      continue;
    uint64_t bytes = mt_dtype_size(entry.dtype) * static_cast<uint64_t>(n);
    for (int32_t d = 1; d < entry.rank; ++d)
      bytes *= static_cast<uint64_t>(entry.shape[d]);
    lines += std::string("\ntensor ") + entry.name + ": " + (tensor ? hashText(tensor, bytes) : "none");
  }
  if (state_->comparedChanges != state_->changes)
    lines += "\nvariables: " + variablesHash();
  state_->comparedChanges = state_->changes;
  return agree(lines);
}

void Session::lose(const Status &error) {
  if (state_->processGroup && health().ok())
    (void)state_->processGroup->lose(error.message(), error.code());
}

} // namespace mtrun
