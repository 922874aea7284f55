// SPDX-License-Identifier: Apache-2.0
//
// The devices of a group on GPUs: contexts, streams, events and memory. What programs are recorded and launched with
// stands on this; CudaGroup.h is the whole group.
#pragma once

#include "runtime/device/DeviceGroup.h"
#include "runtime/device/cuda/Gpus.h"

namespace mtrun::cuda {

// One device of the group.
struct CudaDevice {
  Gpu *gpu = nullptr;
  Stream stream = nullptr;    // copies and launches
  Stream links = nullptr;     // all-reduces, and what runs behind them
  Stream beside = nullptr;    // launches that wait for none of those on `stream` since the last barrier
  Stream inputs = nullptr;    // copies of the caller's tensors, during the launches before
  Event event = nullptr;      // of where one of the streams is, for others to wait for at once
  Event arrived = nullptr;    // of the last copy on `inputs`
  std::vector<Event> reached; // of each operation on `links` of a program
  std::byte *block = nullptr;
  uint64_t blockBytes = 0, used = 0;
  std::vector<std::byte *> blocks; // all that was allocated, to be freed
  // The caller's tensors of all runs in flight, of the program that runs: on the device, and pinned.
  std::byte *scratch = nullptr;
  std::vector<std::byte *> hostScratch; // the last one is as large as `scratch`
  uint64_t scratchBytes = 0;
  std::byte *partials = nullptr; // partial sums of kernels, above their counters
};

// Device memory for a launch's partial sums (runtime/abi/gpu_kernel.h).
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
  // Keeps the failure, if it is one and the first.
  bool check(Result result, int device, const char *what);
  // Waits for all that is in flight, whose results stay to be taken by finish().
  virtual void drain() = 0;
  // Room for the caller's tensors of any program; the same for all of them.
  Status scratch(int device, uint64_t bytes, int64_t maxRows, std::byte **onDevice, std::byte **onHost);
  // Room for the partial sums of any program's kernels, in CudaDevice::partials; the same for all of them.
  Status makePartials(int device);
  // At least so many events a device in `reached`.
  Status makeEvents(size_t count);

protected:
  // One device on each of these GPUs, with its streams. MT_NO_DEVICE, MT_DEVICE.
  Status open(const std::vector<int> &ordinals);
  // GPUs reach one another's memory where they can.
  Status enablePeers();
  Status newBlock(int device, uint64_t bytes, std::byte **memory);
  uint64_t scratchBytes(int64_t maxRows) const; // of the program with the most

  const Driver &driver_;
  std::vector<Gpu> gpus_; // those that devices are on; addresses are taken
  std::vector<CudaDevice> devices_;
  // Of a program's tensors, so many slots for runs.
  struct Tensors {
    uint64_t places, rowBytes;
  };
  std::vector<Tensors> tensors_;
  PartialRoom partialRoom_; // of the launches that need the most

private:
  bool peersReach_ = true; // all GPUs one another's memory
};

// Bytes that an allocation takes: the driver's own alignment.
uint64_t allocated(uint64_t bytes);
inline constexpr uint64_t allocationAlignment = 256;
// At most what alignment adds to a program's tensors.
inline constexpr uint64_t tensorSlack = 64 * allocationAlignment;

} // namespace mtrun::cuda
