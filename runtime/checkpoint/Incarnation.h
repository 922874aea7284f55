// SPDX-License-Identifier: Apache-2.0
//
// A run that is started again is the same run in a new incarnation. Its folder of checkpoints holds a small file with a
// random name of the run and the number of the incarnation: a process of an older incarnation, which was stopped or cut
// off and wakes up, finds a larger number there and writes nothing.
#pragma once

#include "runtime/checkpoint/Disk.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace mtrun {

struct Incarnation {
  std::string run;             // 32 hexadecimal digits; "": none
  int64_t number = 0;          // from 1
  std::string supervisor = {}; // a name of the supervisor that starts the processes, or "-"

  bool operator==(const Incarnation &) const = default;
};

// Returns a line "RUN NUMBER SUPERVISOR", and reads one. Returns false if `text` has another form.
std::string incarnationText(const Incarnation &incarnation);
bool parseIncarnation(std::string_view text, Incarnation &incarnation);

// Returns the incarnation that a folder holds; its run is "" if there is none, or if the file is damaged.
Incarnation readIncarnation(int folder);
// Replaces the incarnation of a folder, atomically. `path` is for messages. MT_IO.
Status writeIncarnation(Disk &disk, int folder, const std::string &path, const Incarnation &incarnation);
// MT_LOST: the folder holds another incarnation than `own`.
Status expectIncarnation(int folder, const std::string &path, const Incarnation &own);
// Draws the name of a run. MT_IO.
Status drawRun(std::string &run);

inline constexpr const char *incarnationFile = ".incarnation";

} // namespace mtrun
