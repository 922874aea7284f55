// SPDX-License-Identifier: Apache-2.0
//
// The commands of mtrun and their options.
#pragma once

#include "tools/mtrun/Arguments.h"

namespace CLI {
class App;
}

namespace mtrun_tool {

// Adds every command to `app`; what a command line says of it goes into `arguments`.
void addCommands(CLI::App &app, Arguments &arguments);

} // namespace mtrun_tool
