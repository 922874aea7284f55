// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Nccl.h"

#include "runtime/device/Library.h"

#include <dlfcn.h>

namespace mtrun::cuda {
namespace {

Status tooOld(const std::string &place, const std::string &found) {
  return {MT_NO_DEVICE, "expected NCCL 2.18 or newer for a process a GPU, found " + place + " " + found +
                            "; install a newer one (Debian, Ubuntu: libnccl2; pip: nvidia-nccl-cu12), or use "
                            "--processes 1"};
}

std::string versionText(int number) {
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

Status open(Nccl &nccl) {
  std::string place, reasons;
  void *library = openFirst(placesNamed("MTRUN_NCCL", {"libnccl.so.2"}), place, reasons);
  if (!library)
    return {MT_NO_DEVICE, "a process a GPU needs NVIDIA's library NCCL, which cannot be opened: " + reasons +
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
    return tooOld(place, "without a version");
  if (nccl.version < oldestNccl || !complete)
    return tooOld(place, versionText(nccl.version));
  return {};
}

} // namespace

std::string Nccl::describe(NcclResult error, NcclComm comm) const {
  const char *text = getErrorString(error), *last = getLastError(comm);
  std::string described = "NCCL " + versionText(version) + ": " + (text ? text : std::to_string(error));
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
