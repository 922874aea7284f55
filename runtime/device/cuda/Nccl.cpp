// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Nccl.h"

#include "runtime/device/Library.h"
#include "runtime/device/cuda/NvidiaLibraries.h"

#include <cstdlib>
#include <dlfcn.h>

namespace mtrun::cuda {
namespace {

Status tooOldNccl(const std::string &place, const std::string &found) {
  return {MT_NO_DEVICE, "expected NCCL 2.18 or newer for a process per GPU, found " + place + " " + found +
                            "; install a newer one (Debian, Ubuntu: libnccl2; pip: nvidia-nccl-cu12), or use "
                            "--processes 1"};
}

std::string ncclVersion(int number) {
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

Status open(Nccl &nccl) {
  // NCCL reads these variables when it starts. All of its calls are in graphs, so mixing support is not needed.
  // Registered buffers in graphs are faster, but have hung between hosts in some releases. Values that the user sets
  // are kept.
  for (const char *name : {"NCCL_GRAPH_MIXING_SUPPORT", "NCCL_GRAPH_REGISTER"})
    setenv(name, "0", 0);
  std::string place, reasons;
  void *library = openFirst(placesNamed(ncclLibrary().variable, ncclLibrary().names), place, reasons);
  if (!library)
    return {MT_NO_DEVICE, "a process per GPU needs NVIDIA's library NCCL, which cannot be opened: " + reasons +
                              "; install it (Debian, Ubuntu: libnccl2; pip: nvidia-nccl-cu12), or use --processes 1"};
  bool complete = true;
  auto find = [&](auto &member, const char *symbol) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(library, symbol));
    complete &= member != nullptr;
  };
#define MTRUN_NCCL_FIND(member, symbol, parameters) find(nccl.member, #symbol);
  MTRUN_NCCL_FUNCTIONS(MTRUN_NCCL_FIND)
#undef MTRUN_NCCL_FIND
  find(nccl.getErrorString, "ncclGetErrorString");
  find(nccl.getLastError, "ncclGetLastError");
  if (!nccl.getVersion || nccl.getVersion(&nccl.version) != ncclOk)
    return tooOldNccl(place, "without a version");
  if (nccl.version < oldestNccl || !complete)
    return tooOldNccl(place, ncclVersion(nccl.version));
  return {};
}

} // namespace

bool Nccl::hangsBetweenHosts() const { return version == 22602 || version == 22809; }

Status Nccl::refused() const {
  return {MT_NO_DEVICE,
          "expected an NCCL that does not hang between hosts, found " + ncclVersion(version) +
              ", which is reported to hang; install another one (2.30.7 is reported to work), or set its path "
              "in MTRUN_NCCL"};
}

std::string Nccl::describe(NcclResult error, NcclComm comm) const {
  const char *text = getErrorString(error), *last = getLastError(comm);
  std::string described = "NCCL " + ncclVersion(version) + ": " + (text ? text : std::to_string(error));
  return last && *last ? described + " (" + last + ")" : described;
}

Status openNccl(const Nccl *&nccl) {
  struct Opened {
    Nccl nccl;
    Status status;
    Opened() { status = open(nccl); }
  };
  static const Opened opened;
  nccl = &opened.nccl;
  return opened.status;
}

} // namespace mtrun::cuda
