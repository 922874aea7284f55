// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries other than the driver: their names and files.
#pragma once

#include <string>
#include <vector>

namespace mtrun::cuda {

struct NvidiaLibrary {
  const char *what, *variable;    // name; environment variable with the path of another file
  std::vector<std::string> names; // file names, in the order of the search
};

// A driver supports libraries of its own major CUDA version and of earlier versions.
NvidiaLibrary cublasLtLibrary(int driverVersion);
NvidiaLibrary cudnnLibrary();
NvidiaLibrary ncclLibrary();

// Appends a line per library: its file and who installed it, or that it is missing.
void listLibraries(int driverVersion, std::vector<std::string> &lines);

} // namespace mtrun::cuda
