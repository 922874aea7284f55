// SPDX-License-Identifier: Apache-2.0
//
// Writes a session's variables in the format of the model's file.
#pragma once

#include "runtime/session/Session.h"

namespace mtrun {

// Returns a variable's bytes for a finished model: the moving average if the variable has one and training has begun,
// else the variable's own bytes.
std::span<const std::byte> finishedValue(const Session &session, uint32_t index);

// Replaces trained variables by their moving averages, if they have moving averages and training has begun.
Status takeAverages(Session &session);

// The extensions of file names that select the format.
inline const std::string tensorsSuffix = ".safetensors", kerasSuffix = ".keras", weightsSuffix = ".weights.h5";

// Checks that the variables can be written to a file of this name. MT_INVALID: the extension is unknown, or belongs to
// a format other than that of the plan's model.
Status checkSave(const Plan &plan, const std::string &path);
// Writes the plan's archive, or its file of weights, with the finished values: the complete file or nothing.
// `classNames` that the plan does not have go into the comment of a .keras file, if they have at most 64 KiB.
// MT_INVALID, MT_IO.
Status writeArchive(const Session &session, const std::string &path, const std::vector<std::string> &classNames = {});

} // namespace mtrun
