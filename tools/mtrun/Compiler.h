// SPDX-License-Identifier: Apache-2.0
//
// mtc, where it is installed, as a child process: models in place of plans, Keras files that mtrun cannot read itself.
#pragma once

#include "runtime/support/temporary_folder.h"
#include "tools/mtrun/Arguments.h"

#include <string>

namespace mtrun_tool {

// The plan that a command runs: arguments.plan or, where this is a model, its plan from the cache of plans, which mtc
// fills. Throws where there is no mtc, or where options that a plan has fixed do not fit.
std::string planOf(const Arguments &arguments);

// A Keras file's variables as a .safetensors file, which goes with the object.
class ImportedVariables {
public:
  // Throws what mtc ends with; its messages are on standard error.
  explicit ImportedVariables(const std::string &kerasFile);
  std::string path() const { return folder_.path() + "/model.safetensors"; }

private:
  mtrun::TemporaryFolder folder_;
};

// Beside this program, or on PATH; empty: there is none.
std::string findCompiler();

// The first bytes of a file, at most so many; empty where it cannot be read.
std::string startOf(const std::string &path, size_t size);

} // namespace mtrun_tool
