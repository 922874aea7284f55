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
void takeAverages(Session &session);

// MT_INVALID: the plan has no archive, or the path does not end as its format does.
Status checkArchive(const Session &session, const std::string &path);
// Writes the plan's archive with the finished values, as a whole or not at all. MT_INVALID: the plan has no archive, or
// the path does not end as its format does; MT_IO.
Status writeArchive(const Session &session, const std::string &path);

} // namespace mtrun
