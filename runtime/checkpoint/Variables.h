// SPDX-License-Identifier: Apache-2.0
//
// A session's variables in files: .safetensors, checkpoints, and Keras files of the plan's own layout.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/session/Session.h"
#include "runtime/support/safetensors.h"

#include <functional>
#include <string>
#include <vector>

namespace mtrun {

// Sets every variable; missing, extra or misshapen ones are errors that list them, and nothing is set. `where` begins
// messages.
Status setVariables(Session &session, const std::string &where, const std::vector<SafeTensor> &tensors);

// Writes all variables and the names of classes; the suffix of `path` says the format. MT_INVALID, MT_IO.
Status saveVariables(Session &session, const std::string &path);

// Reads a file, a checkpoint or the newest of a folder of them. A line to `line`, which may be null, for what a match
// that need not be complete left out.
Status loadVariables(Session &session, const std::string &path, mtrun_match match,
                     const std::function<void(const std::string &)> &line);

} // namespace mtrun
