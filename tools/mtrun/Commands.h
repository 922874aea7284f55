// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of mtrun, which use only mtrun.h. Each returns the exit code.
#pragma once

#include "tools/mtrun/Arguments.h"

namespace mtrun_tool {

int train(const Arguments &arguments);
int evaluate(const Arguments &arguments);
int predict(const Arguments &arguments);
int exportModel(const Arguments &arguments);
int benchmark(const Arguments &arguments);
int devices(const Arguments &arguments);
int tune(const Arguments &arguments);
int data(const Arguments &arguments);
int verify(const Arguments &arguments);
int diff(const Arguments &arguments);

} // namespace mtrun_tool
