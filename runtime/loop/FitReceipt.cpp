// SPDX-License-Identifier: Apache-2.0
//
// The receipt of a fit.
#include "runtime/data/Split.h"
#include "runtime/loop/Fit.h"

#include <cstdlib>
#include <unistd.h>

namespace mtrun {

void Fit::replay(const Receipt &receipt, int64_t from, int64_t until) {
  expected_ = &receipt;
  receipt_.compareWith(receipt, from, until);
}

// `now`: the batch and the order of the data. Sets the rows of the stream to hash.
Status Fit::beginReceipt(const mtrun_dataset &data, LoopState now, StreamOptions &stream) {
  if (!options_.receipt && !expected_)
    return {};
  constexpr int64_t standard = 100;
  nlohmann::json head;
  now.seed = session_->info().seed;
  now.content = contentHash(data);
  int64_t every = expected_ ? expected_->every : options_.receipt_every ? options_.receipt_every : standard;
  if (Status s = describeRun(*session_, {&data, options_.validation, now}, options_, every, head); !s.ok())
    return s;
  receipt_.begin(*session_, std::move(head));
  stream.hashed = receipt_.rows();
  int64_t from = state_.step;
  bool resumes = options_.checkpoint && options_.checkpoint->resume && !expected_;
  bool first = session_->process() == 0;
  if (resumes && first && (saver_.resumed() || access(options_.receipt, F_OK) == 0))
    if (Status s = receipt_.resume(options_.receipt, state_.step, from); !s.ok())
      return s;
  std::string word = std::to_string(from);
  if (Status s = resumes ? session_->broadcast(word) : Status(); !s.ok())
    return s;
  return hashAgain(data, now.stepsPerEpoch, state_.step - std::atoll(word.c_str()), stream);
}

// Hashes the rows of the last `steps` steps before the checkpoint: the receipt has no record after them.
Status Fit::hashAgain(const mtrun_dataset &data, int64_t stepsPerEpoch, int64_t steps, StreamOptions stream) {
  if (steps == 0)
    return {};
  int64_t first = state_.epoch * stepsPerEpoch + state_.position - steps;
  stream.epoch = first / stepsPerEpoch;
  stream.position = first % stepsPerEpoch;
  stream.epochs = state_.epoch + 1;
  EpochLoop loop;
  if (Status s = loop.open(*session_, &data, "train_step", stream); !s.ok())
    return s;
  for (int64_t i = 0; i < steps; ++i) {
    const Batch &batch = loop.skip();
    if (!batch.status.ok())
      return batch.status;
    receipt_.add(batch);
  }
  return {};
}

Status Fit::startReceipt() {
  if (options_.hash_launches && !options_.launch_file)
    return {MT_INVALID, "expected a file for the digests of launches, found none"};
  if (options_.hash_launches && options_.hash_launches <= state_.step)
    return {MT_INVALID, "expected a step after step " + std::to_string(state_.step) +
                            ", at which the run goes on, for the digests of launches, found " +
                            std::to_string(options_.hash_launches)};
  if (!receipt_.isOn())
    return {};
  if (Status s = session_->collect(); !s.ok() || (session_->process() > 0 && !expected_))
    return s;
  return receipt_.start(options_.receipt ? options_.receipt : "");
}

// The record of a step that ends an epoch follows the callbacks, which may change the learning rate, as its checkpoint
// does.
Status Fit::recordStep() {
  if (!receipt_.isOn() || !receipt_.isDue(state_.step))
    return {};
  std::vector<std::string> names;
  for (const MetricColumn &column : train_.columns())
    names.push_back(column.name);
  if (Status s = receipt_.record(state_, names, train_.means()); !s.ok())
    return s;
  replayed_ = receipt_.isComplete(state_.step);
  return {};
}

Status Fit::endReceipt() {
  if (options_.hash_launches > state_.step && !stop_)
    return {MT_INVALID, "expected a step of the run for the digests of launches, found step " +
                            std::to_string(options_.hash_launches) + " of " + std::to_string(state_.step)};
  return receipt_.isOn() && !stop_ ? receipt_.end(state_) : Status();
}

} // namespace mtrun
