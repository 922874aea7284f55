// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/NvidiaLibraries.h"

#include "runtime/device/Library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>

namespace mtrun::cuda {

NvidiaLibrary cublasLtLibrary(int driverVersion) {
  NvidiaLibrary library = {"cuBLASLt", "MTRUN_CUDA_CUBLASLT", {"libcublasLt.so.12"}};
  if (driverVersion >= 13000)
    library.names.insert(library.names.begin(), "libcublasLt.so.13");
  return library;
}

NvidiaLibrary cudnnLibrary() { return {"cuDNN", "MTRUN_CUDA_CUDNN", {"libcudnn.so.9"}}; }

NvidiaLibrary ncclLibrary() { return {"NCCL", "MTRUN_NCCL", {"libnccl.so.2"}}; }

// Returns who installed the library. Wheels of PyPI are in .../nvidia/NAME/lib; packaging/CMakeLists.txt has the search
// order.
static std::string broughtBy(const std::string &path, const char *variable) {
  if (const char *named = std::getenv(variable); named && *named)
    return variable;
  if (path.find("/nvidia/") != std::string::npos && path.find("/lib/") != std::string::npos)
    return "a wheel of PyPI";
  return path.starts_with("/usr/local/cuda") ? "the CUDA toolkit" : "the loader";
}

void listLibraries(int driverVersion, std::vector<std::string> &lines) {
  for (const NvidiaLibrary &library : {cublasLtLibrary(driverVersion), cudnnLibrary(), ncclLibrary()}) {
    std::string place, reasons, line = library.what;
    line.resize(19, ' ');
    void *handle = openFirst(placesNamed(library.variable, library.names), place, reasons);
    link_map *map = nullptr;
    if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name && *map->l_name)
      place = map->l_name;
    lines.push_back(line + (handle ? place + ", by " + broughtBy(place, library.variable) : "none: " + reasons));
    if (handle)
      dlclose(handle);
  }
}

} // namespace mtrun::cuda
