// SPDX-License-Identifier: Apache-2.0
//
// The kinds of devices: the CPU and null groups differ only in the code that they load; GPUs are in a separate library.
#include "runtime/abi/kernel_symbol.h"
#include "runtime/device/CodeObject.h"
#include "runtime/device/CpuDeviceGroup.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/device/Library.h"
#include "runtime/device/cuda/PlugIn.h"
#include "runtime/plan/Check.h"
#include "runtime/support/device_spec.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <iterator>

namespace mtrun {
namespace {

// Runs the plan's machine code.
class CpuGroup : public CpuDeviceGroup {
public:
  const char *kind() const override { return "cpu"; }

  Status loadCode(const Plan &plan, const char *target) override {
    uint32_t index;
    if (Status status = chooseTarget(plan, target, cpuHasFeature, index); !status.ok())
      return status;
    const mt::plan::Target &chosen = *plan.tables().targets()->Get(index);
    target_ = chosen.name()->c_str();
    if (Status status = code_.load(plan.section(chosen.section()), chosen.name()->str()); !status.ok())
      return status;
    for (uint32_t i = 0; i < count(plan.tables().kernels()); ++i) {
      const mt::plan::Kernel &kernel = *plan.tables().kernels()->Get(i);
      kernels_.push_back(code_.find(kernelSymbol(kernel.name()->string_view()).c_str()));
      scratchBytes_ = std::max(scratchBytes_, kernel.scratch_bytes());
      if (!kernels_.back())
        return {MT_CORRUPT, std::string("target ") + target_ + ": expected a function " + kernel.name()->str() +
                                " in its code, found none"};
    }
    measureExchanges(plan);
    return {};
  }

  const char *target() const override { return target_; }
  KernelHandle kernel(uint32_t index) const override { return kernels_[index]; }

private:
  const char *target_ = "";
  CodeObject code_;
  std::vector<KernelHandle> kernels_;
};

// Runs no kernels: launches are counted, waits and copies happen. It measures the runtime's own overhead.
class NullGroup : public CpuDeviceGroup {
public:
  const char *kind() const override { return "null"; }
  Status loadCode(const Plan &plan, const char *target) override {
    target_ = "null";
    measureExchanges(plan);
    return {};
  }
  const char *target() const override { return target_; }
  KernelHandle kernel(uint32_t index) const override {
    mt_kernel_fn nothing = [](const mt_kernel_params *, void *const *, int64_t, int64_t) {};
    return reinterpret_cast<KernelHandle>(nothing);
  }

private:
  const char *target_ = "";
};

template <typename Group> Status start(const GroupOptions &options, std::unique_ptr<DeviceGroup> &group) {
  auto started = std::make_unique<Group>();
  if (Status status = started->start(options); !status.ok())
    return status;
  group = std::move(started);
  return {};
}

const char *const cudaLibrary = "libmtrun_cuda.so." MTRUN_CUDA_SOVERSION;

// Opens the library for GPUs, which is loaded only when a GPU is used.
Status openCuda(const cuda::PlugIn *&plugIn) {
  std::string place, reasons;
  void *library = openLibrary(cudaLibrary, place, reasons);
  if (!library)
    return {MT_NO_DEVICE, std::string("GPUs need ") + cudaLibrary + ", which cannot be opened: " + reasons};
  auto entry = reinterpret_cast<const cuda::PlugIn *(*)()>(dlsym(library, "mtrun_cuda_plug_in"));
  plugIn = entry ? entry() : nullptr;
  if (!plugIn || std::strcmp(plugIn->build, cuda::build) != 0)
    return {MT_NO_DEVICE,
            place + ": expected a library of build " + cuda::build + ", found " + (plugIn ? plugIn->build : "none")};
  return {};
}

Status makeCuda(const GroupOptions &options, std::unique_ptr<DeviceGroup> &group) {
  const cuda::PlugIn *plugIn = nullptr;
  if (Status status = openCuda(plugIn); !status.ok())
    return status;
  return plugIn->make(options, group);
}

Status listCuda(std::vector<std::string> &lines) {
  const cuda::PlugIn *plugIn = nullptr;
  if (Status status = openCuda(plugIn); !status.ok())
    return status;
  return plugIn->list(lines);
}

Status listCudaLibraries(std::vector<std::string> &lines) {
  const cuda::PlugIn *plugIn = nullptr;
  if (Status status = openCuda(plugIn); !status.ok())
    return status;
  return plugIn->libraries(lines);
}

using List = Status (*)(std::vector<std::string> &lines);

// How to open and to list the kinds of device_spec.h, in the same order.
struct Opener {
  Status (*make)(const GroupOptions &options, std::unique_ptr<DeviceGroup> &group);
  List list;      // lists devices; null: any number can be requested
  List libraries; // lists the libraries that devices use; null: none
};
constexpr Opener openers[] = {
    {start<CpuGroup>, nullptr, nullptr}, {start<NullGroup>, nullptr, nullptr}, {makeCuda, listCuda, listCudaLibraries}};
static_assert(std::size(openers) == std::size(deviceKinds));

Status listAll(List Opener::*list, std::vector<std::string> &lines) {
  for (const Opener &opener : openers)
    if (opener.*list)
      if (Status status = (opener.*list)(lines); !status.ok())
        return status;
  return {};
}

} // namespace

Status listDevices(std::vector<std::string> &lines) { return listAll(&Opener::list, lines); }
Status listLibraries(std::vector<std::string> &lines) { return listAll(&Opener::libraries, lines); }

Status makeDeviceGroup(const std::string &kind, const GroupOptions &options, std::unique_ptr<DeviceGroup> &group) {
  if (const DeviceKind *known = deviceKind(kind))
    return openers[known - deviceKinds].make(options, group);
  return {MT_INVALID, "expected devices of kind " + deviceKindNames(/*withCode=*/false) + ", found " + kind};
}

} // namespace mtrun
