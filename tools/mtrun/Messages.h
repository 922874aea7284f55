// SPDX-License-Identifier: Apache-2.0
//
// What mtrun says, and how it ends.
#pragma once

#include <string>

namespace mtrun_tool {

// EX_TEMPFAIL: asked to stop, and what is needed to go on is saved.
inline constexpr int interrupted = 75;

// Prints "mtrun: error: ..." for each line of the message, and returns the code.
int reportError(int code, const std::string &message);
// To standard output, at once.
void print(const std::string &text);
// The reason why it could not be written, 0 if it could.
int outputError();

} // namespace mtrun_tool
