// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Driver.h"

#include "runtime/device/Library.h"

#include <dlfcn.h>

namespace mtrun::cuda {

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

namespace {

Status tooOldDriver(const std::string &place, const std::string &found) {
  return {MT_NO_DEVICE, "expected an NVIDIA driver for CUDA " + versionText(oldestDriver) + " or newer, found " +
                            place + " " + found + "; install a newer driver"};
}

Status open(Driver &driver) {
  std::string place, reasons;
  void *library = openFirst(placesNamed("MTRUN_CUDA_DRIVER", {"libcuda.so.1"}), place, reasons);
  if (!library)
    return {MT_NO_DEVICE, "GPUs need the NVIDIA driver's library, which cannot be opened: " + reasons +
                              "; install the driver, or use --devices cpu"};
#define MTRUN_CUDA_FIND(member, symbol, parameters)                                                                    \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, #symbol));                                  \
  if (!driver.member)                                                                                                  \
    return tooOldDriver(place, "without " #symbol);
  MTRUN_CUDA_FUNCTIONS(MTRUN_CUDA_FIND)
#undef MTRUN_CUDA_FIND
  int found = 0;
  if (driver.driverGetVersion(&found) == success && found < oldestDriver)
    return tooOldDriver(place, "for " + versionText(found));
  Result result = driver.init(0);
  if (result == noDevice)
    return {MT_NO_DEVICE, "expected an NVIDIA GPU, the driver finds none"};
  if (result != success)
    return {MT_NO_DEVICE, "the NVIDIA driver does not start: " + driver.describe(result)};
  return {};
}

} // namespace

std::string Driver::describe(Result error) const {
  const char *name = nullptr, *text = nullptr;
  if (getErrorName(error, &name) != success || !name)
    return "CUDA error " + std::to_string(error);
  if (getErrorString(error, &text) != success || !text)
    return name;
  return std::string(name) + ": " + text;
}

Status openDriver(const Driver *&driver) {
  struct Opened {
    Driver driver;
    Status status;
    Opened() { status = open(driver); }
  };
  static const Opened opened;
  driver = &opened.driver;
  return opened.status;
}

} // namespace mtrun::cuda
