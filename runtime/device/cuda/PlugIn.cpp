// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/PlugIn.h"

#include "runtime/device/cuda/CudaGroup.h"
#include "runtime/device/cuda/NvidiaLibraries.h"

#include <cstdio>

namespace mtrun::cuda {
namespace {

Status make(const GroupOptions &options, std::unique_ptr<DeviceGroup> &group) {
  const Driver *driver = nullptr;
  if (Status status = openDriver(driver); !status.ok())
    return status;
  auto made = std::make_unique<CudaGroup>(*driver);
  if (Status status = made->start(options); !status.ok())
    return status;
  group = std::move(made);
  return {};
}

Status list(std::vector<std::string> &lines) {
  const Driver *driver = nullptr;
  if (Status status = openDriver(driver); !status.ok())
    return status;
  std::vector<Gpu> gpus;
  if (Status status = listGpus(*driver, gpus); !status.ok())
    return status;
  for (const Gpu &gpu : gpus) {
    char text[400];
    std::snprintf(text, sizeof text, "cuda:%d             %s, compute capability %d.%d, %.1f GiB", gpu.ordinal,
                  gpu.name.c_str(), gpu.major, gpu.minor, static_cast<double>(gpu.bytes) / 0x1p30);
    lines.push_back(text);
  }
  return {};
}

Status libraries(std::vector<std::string> &lines) {
  const Driver *driver = nullptr;
  if (Status status = openDriver(driver); !status.ok())
    return status;
  int version = 0;
  (void)driver->driverGetVersion(&version);
  listLibraries(version, lines);
  return {};
}

} // namespace
} // namespace mtrun::cuda

const mtrun::cuda::PlugIn *mtrun_cuda_plug_in() {
  static const mtrun::cuda::PlugIn plugIn = {mtrun::cuda::build, mtrun::cuda::make, mtrun::cuda::list,
                                             mtrun::cuda::libraries};
  return &plugIn;
}
