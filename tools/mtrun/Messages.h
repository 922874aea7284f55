// SPDX-License-Identifier: Apache-2.0
//
// Messages and exit codes of mtrun.
#pragma once

#include <string>

namespace mtrun_tool {

// EX_TEMPFAIL: the run was asked to stop, and can be resumed from its checkpoint.
inline constexpr int interrupted = 75;
// verify and diff have found a difference.
inline constexpr int differing = 10;

// Prints "mtrun: error: ..." for each line of the message, and returns the code.
int reportError(int code, const std::string &message);
// Prints to standard output and flushes it.
void print(const std::string &text);
// Returns the errno of the first failed write to standard output, or 0.
int outputError();

} // namespace mtrun_tool
