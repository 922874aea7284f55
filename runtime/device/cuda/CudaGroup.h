// SPDX-License-Identifier: Apache-2.0
//
// Devices on GPUs of this machine, one or more a GPU, in one process. Each has one block of memory, taken when the
// session asks for it, and three streams; a program is one CUDA graph over all devices (Capture.h). docs/gpu-code.md.
#pragma once

#include "runtime/device/DeviceGroup.h"
#include "runtime/device/cuda/Gpus.h"
#include "runtime/device/cuda/Libraries.h"

#include <array>

namespace mtrun::cuda {

// One device of the group.
struct CudaDevice {
  Gpu *gpu = nullptr;
  Stream stream = nullptr;    // copies and launches
  Stream links = nullptr;     // all-reduces, and what runs behind them
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

class Communicator;
class Launches;

class CudaGroup : public DeviceGroup {
public:
  explicit CudaGroup(const Driver &driver);
  ~CudaGroup() override;
  Status start(const GroupOptions &options);

  const char *kind() const override { return "cuda"; }
  int devices() const override { return static_cast<int>(devices_.size()); }
  int threads() const override { return 1; }
  bool hostMemory() const override { return false; }
  bool blocks() const override { return true; }
  uint64_t availableMemory() const override;
  Status loadCode(const Plan &plan, const char *target) override;
  const char *target() const override { return target_; }
  KernelHandle kernel(uint32_t index) const override;
  uint64_t preparedBytes(const Plan &plan, int64_t maxRows) const override;
  Status reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) override;
  Status allocate(int device, uint64_t bytes, void **memory) override;
  void fill(int device, void *memory, uint8_t byte, uint64_t bytes) override;
  void copyIn(int device, void *to, const void *from, uint64_t bytes) override;
  void copyOut(int device, void *to, const void *from, uint64_t bytes) override;
  Status prepare(BoundProgram &program) override;
  Status prepareTrace(BoundProgram &program) override;
  Rates rates() const override;
  uint64_t takenMemory() const override;
  int maxInFlight() const override { return static_cast<int>(inFlightLaunches_.size()); }
  int runsPerLaunch(const BoundProgram &program) const override;
  void begin(BoundProgram &program, std::span<const StepArguments> runs) override;
  void finish() override;
  uint64_t launches() const override { return launches_; }
  uint64_t collectiveBytes() const override { return collectiveBytes_; }
  Status tune(BoundProgram &program, const std::string &path, int repeats,
              const std::function<void(const std::string &)> &line) override;
  std::string tuning() const override { return libraries_->tuning(); }
  void corruptPartial(int collective, int device) override;

  // For what prepares and captures programs.
  const Driver &driver() const { return driver_; }
  Communicator &communicator() { return *communicator_; }
  bool peersReach() const { return peersReach_; }
  // Whether all-reduces are the links' own, in an order of theirs.
  bool addsByCommunicator() const { return addsByCommunicator_; }
  Libraries &libraries() { return *libraries_; }
  CudaDevice &device(int index) { return devices_[static_cast<size_t>(index)]; }
  Function function(int device, KernelHandle kernel) const;
  bool makeCurrent(int device);
  // Keeps the failure, if it is one and the first.
  bool check(Result result, int device, const char *what);
  // Waits for all that is in flight, whose results stay to be taken by finish().
  void drain();
  // Room for the caller's tensors of any program; the same for all of them.
  Status scratch(int device, uint64_t bytes, int64_t maxRows, std::byte **onDevice, std::byte **onHost);
  // Room for the partial sums of any program's kernels, in CudaDevice::partials; the same for all of them.
  Status makePartials(int device);
  // At least so many events a device in `reached`.
  Status makeEvents(size_t count);
  int corruptCollective() const { return corruptCollective_; }
  int corruptDevice() const { return corruptDevice_; }

private:
  Status loadTarget(const Plan &plan, const char *forced);
  Status newBlock(int device, uint64_t bytes, std::byte **memory);
  // ShardCheck.cpp
  Status checkCalls(BoundProgram &program);
  Status checkShard(const DeviceProgram &program, int device, const BoundStep &step);
  Status enablePeers();
  // A launch that began.
  struct Launch {
    BoundProgram *program = nullptr;
    int set = 0, runs = 0, finished = 0;
    Event done = nullptr;
    bool over = false; // the host has waited for it
  };
  bool wait(Launch &launch);
  // Runs the traced launch that begins, to its end.
  bool runTraced(BoundProgram &program, Launch &launch, const StepArguments &run);
  // Runs of a program that a launch may hold, and sets of slots for them.
  int runsOf(bool hasMetrics) const { return hasMetrics ? options_.stepsPerLaunch : 1; }
  static int setsOf(bool hasTensors) { return hasTensors ? 2 : 1; }
  uint64_t placesOf(const mt::plan::Program &program) const;
  void measureDriver(const Plan &plan);

  const Driver &driver_;
  GroupOptions options_;
  std::unique_ptr<Libraries> libraries_; // of the plan whose code is loaded
  std::vector<Gpu> gpus_;              // those that devices are on; addresses are taken
  std::vector<CudaDevice> devices_;
  int sessionDevices_ = 1; // those of other processes too
  std::unique_ptr<Communicator> communicator_;
  bool addsByCommunicator_ = false;
  const char *target_ = "";
  std::string precision_; // of the plan
  uint64_t stackBytes_ = 0;  // of a thread, of the kernel that has the most
  uint64_t driverBytes_ = 0; // that the driver takes of a device beside its block
  bool peersReach_ = true;   // all GPUs one another's memory
  // Of a program's tensors, so many slots for runs.
  struct Tensors {
    uint64_t places, rowBytes;
  };
  uint64_t scratchBytes(int64_t maxRows) const; // of the program with the most

  std::vector<Tensors> tensors_;
  std::array<Launch, 2> inFlightLaunches_;
  int oldest_ = 0, flying_ = 0;        // of inFlightLaunches_
  const BoundProgram *last_ = nullptr; // that had the scratch memory
  uint64_t freeBefore_ = 0;            // on all GPUs, before any memory was taken
  PartialRoom partialRoom_;            // of the launches that need the most
  uint64_t launches_ = 0, collectiveBytes_ = 0;
  int corruptCollective_ = -1, corruptDevice_ = -1;
};

} // namespace mtrun::cuda
