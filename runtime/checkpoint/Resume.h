// SPDX-License-Identifier: Apache-2.0
//
// From a checkpoint back to a session.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/session/Session.h"

namespace mtrun {

// Puts the session where the checkpoint was made: seed and variables. `samePlan` says whether the plan is the one that
// made it; without `force` another plan is MT_INVALID, even if its variables fit, and so are devices or libraries that
// compute other bits.
Status restore(Session &session, const Checkpoint &checkpoint, bool force, bool &samePlan);

// MT_INVALID: `now`, of the run that resumes, has other samples, batches or order than the checkpoint's run had.
Status compareData(const LoopState &then, const LoopState &now, const std::string &where);

} // namespace mtrun
