// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of mtrun and their options.
#pragma once

#include "tools/mtrun/Arguments.h"

namespace CLI {
class App;
}

namespace mtrun_tool {

// Adds all subcommands to `app`; parsed values are stored in `arguments`.
void addCommands(CLI::App &app, Arguments &arguments);

} // namespace mtrun_tool
