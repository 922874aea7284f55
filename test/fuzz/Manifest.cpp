// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a checkpoint's manifest, as they are and with a right hash at their end: the reader says no, or gives a
// state that a run can go on from.
#include "runtime/checkpoint/Manifest.h"
#include "runtime/loop/Callbacks.h"
#include "test/fuzz/Sealed.h"

using namespace mtrun;

static void check(const LoopState &state) {
  int64_t all = 0;
  if (state.epoch < 0 || state.position < 0 || state.step < 0 || state.position > state.step ||
      (state.stepsPerEpoch > 0 && state.position > state.stepsPerEpoch) || state.stepsPerEpoch < 0 || state.batch < 0 ||
      state.samples < 0 || state.window < 0 || __builtin_mul_overflow(state.epoch, state.stepsPerEpoch, &all) ||
      state.sums.size() < state.totals.size() ||
      (state.names.empty() ? !state.history.empty() : state.history.size() % state.names.size() != 0))
    __builtin_trap();
  mtrun_loop_options options = mtrun_loop_options_init();
  options.early_patience = options.plateau_patience = 3;
  options.epoch_best_only = 1;
  const std::vector<MetricColumn> columns = {{"loss", false, true}};
  const double values[] = {0.5};
  LoopState kept;
  Callbacks callbacks;
  if (!callbacks.open(options, columns, false).ok())
    __builtin_trap();
  callbacks.restore(state);
  callbacks.update(0, 1, values);
  callbacks.keep(kept);
  for (size_t i = Record::numberCount; i < kept.callbacks["early_stop"].size(); ++i)
    if (kept.callbacks["early_stop"][i] < 0)
      __builtin_trap();
}

static void parse(const std::string &text) {
  Manifest manifest, again;
  Status status = parseManifest(text, "fuzz", manifest);
  if (!status.ok()) {
    if (status.code() != MT_CORRUPT || status.message().size() < 7)
      __builtin_trap();
    return;
  }
  check(manifest.state);
  // What was read can be written, and reads the same.
  std::string written = writeManifest(manifest);
  if (!parseManifest(written, "again", again).ok() || writeManifest(again) != written)
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  parseSealed(data, size, parse);
  return 0;
}
