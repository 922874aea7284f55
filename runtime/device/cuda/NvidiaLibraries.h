// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries besides the driver: their names, and which files they are here.
#pragma once

#include <string>
#include <vector>

namespace mtrun::cuda {

struct NvidiaLibrary {
  const char *what, *variable;    // its name; the variable of the environment that names another file
  std::vector<std::string> names; // of files, the one to take first
};

// A driver runs libraries of its own major version of CUDA and of earlier ones.
NvidiaLibrary cublasLtLibrary(int driverVersion);
NvidiaLibrary cudnnLibrary();
NvidiaLibrary ncclLibrary();

// A line for each of the three: the file that a run would take and who brought it, or that there is none.
void listLibraries(int driverVersion, std::vector<std::string> &lines);

} // namespace mtrun::cuda
