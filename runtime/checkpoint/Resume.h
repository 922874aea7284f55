// SPDX-License-Identifier: Apache-2.0
//
// Restores a session from a checkpoint.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/session/Session.h"

namespace mtrun {

// Sets the session's seed and variables to the checkpoint's. `samePlan`: true if this plan wrote the
// checkpoint. Without `force`, another plan is MT_INVALID, even if its variables fit, and so are devices or libraries
// that compute other bits.
Status restore(Session &session, const Checkpoint &checkpoint, bool force, bool &samePlan);

// A fact about the data and its order that changes the bits of a run. Checkpoints and receipts compare all of them.
struct OrderFact {
  const char *member, *what;
  int64_t (*of)(const LoopState &state);
};
inline constexpr OrderFact orderFacts[] = {
    {"samples", "samples", [](const LoopState &state) { return state.samples; }},
    {"batch", "a batch of", [](const LoopState &state) { return state.batch; }},
    {"steps_per_epoch", "steps per epoch", [](const LoopState &state) { return state.stepsPerEpoch; }},
    {"shuffle", "shuffled (1) or not (0)", [](const LoopState &state) { return int64_t{state.shuffle}; }},
    {"window", "a shuffle window of", [](const LoopState &state) { return state.window; }},
    {"choice", "the hash of the samples that are not held out (0: all are used)",
     [](const LoopState &state) { return state.choice; }},
    {"drop_remainder", "the remainder dropped (1) or not (0)",
     [](const LoopState &state) { return int64_t{state.dropRemainder}; }}};

// MT_INVALID: the data of the resuming run, `now`, has other samples, batches or order than the checkpoint's data.
Status compareData(const LoopState &then, const LoopState &now, const std::string &where);

} // namespace mtrun
