// SPDX-License-Identifier: Apache-2.0
//
// The devices of a group on GPUs: contexts, streams, events and memory, which recording and launching use. CudaGroup.h
// has the complete group.
#pragma once

#include "runtime/device/DeviceGroup.h"
#include "runtime/device/cuda/Gpus.h"

namespace mtrun::cuda {

// One device of the group.
struct CudaDevice {
  Gpu *gpu = nullptr;
  Stream stream = nullptr;      // copies and launches
  Stream links = nullptr;       // all-reduces, and updates that depend on them
  Stream independent = nullptr; // launches that are independent of the launches on `stream` since the last barrier
  Stream inputs = nullptr;      // copies of the caller's tensors for the next launch
  Event event = nullptr;        // marks the end of one of the streams for an immediate wait
  Event arrived = nullptr;      // marks the last copy on `inputs`
  std::vector<Event> reached;   // by operation on `links` of a program
  std::byte *block = nullptr;
  uint64_t blockBytes = 0, used = 0;
  std::vector<std::byte *> blocks; // all allocations, for freeing
  // The caller's tensors of all runs in flight: on the device and in pinned memory.
  std::byte *scratch = nullptr;
  std::vector<std::byte *> hostScratch; // the last one is as large as `scratch`
  uint64_t scratchBytes = 0;
  std::byte *partials = nullptr; // partial sums of kernels, after their counters
};

// The sizes of device memory for a launch's partial sums (runtime/abi/gpu_kernel.h).
struct PartialRoom {
  uint64_t counterBytes = 0, sumBytes = 0;
  uint64_t bytes() const { return counterBytes + sumBytes; }
};

class CudaDevices : public DeviceGroup {
public:
  explicit CudaDevices(const Driver &driver) : driver_(driver) {}
  ~CudaDevices() override;

  KernelHandle kernel(uint32_t index) const override;
  int devices() const override { return static_cast<int>(devices_.size()); }
  uint64_t availableMemory() const override;
  Status allocate(int device, uint64_t bytes, void **memory) override;
  void fill(int device, void *memory, uint8_t byte, uint64_t bytes) override;
  void copyIn(int device, void *to, const void *from, uint64_t bytes) override;
  void copyOut(int device, void *to, const void *from, uint64_t bytes) override;

  const Driver &driver() const { return driver_; }
  bool peersReach() const { return peersReach_; }
  CudaDevice &device(int index) { return devices_[static_cast<size_t>(index)]; }
  const LoadedKernel &loaded(int device, KernelHandle kernel) const;
  bool makeCurrent(int device);
  // Records `result` in health() if it is the first error. Returns true on success.
  bool check(Result result, int device, const char *what);
  // Waits for all launches in flight; finish() still returns their results.
  virtual void drain() = 0;
  // Returns memory for the caller's tensors, which all programs share.
  Status scratch(int device, uint64_t bytes, int64_t maxRows, std::byte **onDevice, std::byte **onHost);
  // Allocates memory for the partial sums of kernels, CudaDevice::partials, which all programs share.
  Status makePartials(int device);
  // Makes at least `count` events per device in `reached`.
  Status makeEvents(size_t count);

protected:
  // Opens a device on each of these GPUs, with its streams. MT_NO_DEVICE, MT_DEVICE.
  Status open(const std::vector<int> &ordinals);
  // Enables access between GPUs' memories if possible.
  Status enablePeers();
  Status newBlock(int device, uint64_t bytes, std::byte **memory);
  uint64_t scratchBytes(int64_t maxRows) const; // the maximum over all programs

  const Driver &driver_;
  std::vector<Gpu> gpus_; // the GPUs of the devices; devices keep pointers to them
  std::vector<CudaDevice> devices_;
  // The size of a program's tensors per row, and the number of slots for its runs.
  struct Tensors {
    uint64_t places, rowBytes;
  };
  std::vector<Tensors> tensors_;
  PartialRoom partialRoom_; // the maximum over all launches

private:
  bool peersReach_ = true; // every GPU can access every other GPU's memory
};

// Returns the bytes of an allocation, rounded up to the driver's alignment.
uint64_t allocated(uint64_t bytes);
inline constexpr uint64_t allocationAlignment = 256;
// An upper bound of the alignment bytes of a program's tensors.
inline constexpr uint64_t tensorSlack = 64 * allocationAlignment;

} // namespace mtrun::cuda
