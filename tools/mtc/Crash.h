// SPDX-License-Identifier: Apache-2.0
//
// Handles a crash of mtc compile: the compilation runs again in a process of its own, which writes the IR after each
// stage, and the message names the last of these files. The library itself handles no signals.
#ifndef TOOLS_MTC_CRASH_H
#define TOOLS_MTC_CRASH_H

#include "runtime/abi/mtc.h"

#include <functional>

// From now on a crash starts this program again with --after-crash SIGNAL before the arguments, waits for it, and ends
// the process as it would have ended. In builds with sanitizers, which report crashes themselves, nothing changes.
void handleCrashes(int argc, char **argv);

// The signal of `--after-crash SIGNAL`, which is taken out of the arguments; 0 if there is none.
int takeCrash(int &argc, char **argv);

// Runs `compile` in a child process, with a folder that receives the IR after each stage, and prints what is found.
void reportCrash(int signal, const std::function<void(const char *folder)> &compile);

#endif
