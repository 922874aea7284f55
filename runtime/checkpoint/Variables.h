// SPDX-License-Identifier: Apache-2.0
//
// A session's variables in files: .safetensors, checkpoints, and Keras files with the layout of the plan's archive.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/session/Session.h"
#include "runtime/support/safetensors.h"

#include <functional>
#include <string>
#include <vector>

namespace mtrun {

// Sets all variables. Missing and additional variables and other shapes are errors; the message lists them, and no
// variable is changed. `where` begins messages.
Status setVariables(Session &session, const std::string &where, const std::vector<SafeTensor> &tensors);

// Writes all variables and the class names; the suffix of `path` selects the format. MT_INVALID, MT_IO.
Status saveVariables(Session &session, const std::string &path);

// Reads a file, a checkpoint, or the newest checkpoint in a folder. Calls `line`, which may be null, for each kind of
// difference that `match` allows.
Status loadVariables(Session &session, const std::string &path, mtrun_match match,
                     const std::function<void(const std::string &)> &line);

} // namespace mtrun
