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

// MT_INVALID: the data of the resuming run, `now`, has other samples, batches or order than the checkpoint's data.
Status compareData(const LoopState &then, const LoopState &now, const std::string &where);

} // namespace mtrun
