// SPDX-License-Identifier: Apache-2.0
//
// A session's variables in the format that the model came from.
#pragma once

#include "runtime/session/Session.h"

namespace mtrun {

// The bytes that a variable has in a finished model: its moving average's where it has one and training has begun, else
// its own.
std::span<const std::byte> finishedValue(const Session &session, uint32_t index);

// Trained variables become their moving averages, where they have ones and training has begun.
Status takeAverages(Session &session);

// What the extension of a file's name says of its format.
inline const std::string tensorsSuffix = ".safetensors", kerasSuffix = ".keras", weightsSuffix = ".weights.h5";

// Whether the variables can be written to a file of this name. MT_INVALID: the extension is of no format, or of one
// that the plan's model did not come in.
Status checkSave(const Plan &plan, const std::string &path);
// Writes the plan's archive with the finished values, or what of it is the file of weights, as a whole or not at all.
// Names of classes that the plan does not have itself go into a .keras file's comment, if these are at most 64 KiB.
// MT_INVALID, MT_IO.
Status writeArchive(const Session &session, const std::string &path, const std::vector<std::string> &classNames = {});

} // namespace mtrun
