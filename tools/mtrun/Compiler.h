// SPDX-License-Identifier: Apache-2.0
//
// Runs an installed mtc as a child process: compiles models that are used as plans, and reads Keras files that mtrun
// cannot read itself.
#pragma once

#include "runtime/support/temporary_folder.h"
#include "tools/mtrun/Arguments.h"

#include <string>

namespace mtrun_tool {

// Returns the plan that a command runs: arguments.plan, or if this is a model its plan in the cache, which mtc compiles
// if it is missing. Throws if there is no mtc, or if an option contradicts a plan.
std::string planOf(const Arguments &arguments);

// A Keras file's variables as a temporary .safetensors file, which the destructor removes.
class ImportedVariables {
public:
  // Throws mtc's exit code; mtc prints its messages to standard error.
  explicit ImportedVariables(const std::string &kerasFile);
  std::string path() const { return folder_.path() + "/model.safetensors"; }

private:
  mtrun::TemporaryFolder folder_;
};

// Searches the folder of this program, then PATH. Returns "" if mtc is not installed.
std::string findCompiler();

// Returns the first `size` bytes of a file, or fewer; "" if it cannot be read.
std::string startOf(const std::string &path, size_t size);

} // namespace mtrun_tool
