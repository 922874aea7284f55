// SPDX-License-Identifier: Apache-2.0
//
// The communicator for a process per device: NCCL copies partial sums and results without adding them, so the bits are
// equal to a run in one process. There is one NCCL communicator, used by one thread in the same order in all processes.
// docs/gpu-code.md explains why it cannot hang.
#pragma once

#include "runtime/device/ProcessGroup.h"
#include "runtime/device/cuda/Communicator.h"
#include "runtime/device/cuda/Nccl.h"

#include <atomic>
#include <functional>

namespace mtrun::cuda {

class NcclCommunicator : public Communicator {
public:
  // Opens NCCL and connects this process's device with all others. Collective. MT_NO_DEVICE, MT_DEVICE, MT_LOST.
  static Status open(CudaDevices &group, ProcessGroup &peers, std::unique_ptr<Communicator> &links);
  // All graphs with NCCL calls must have been destroyed.
  ~NcclCommunicator() override;

  Status gatherPartials(const Chunks &chunks) override;
  Status spreadResults(const Chunks &chunks) override;
  bool adds() const override { return true; }
  Status allReduce(const Chunks &chunks) override;
  Status warmUp(bool adding, const std::vector<uint64_t> &bytes) override;
  void begin(uint64_t runs) override { peers_.begin(runs); }
  void end(uint64_t runs) override { peers_.end(runs); }
  Status wait(Event event) override;

private:
  NcclCommunicator(CudaDevices &group, ProcessGroup &peers, const Nccl &nccl)
      : group_(group), peers_(peers), nccl_(nccl) {}
  // MT_INVALID in all processes if two of them have one GPU.
  Status expectOwnGpu();
  Status connect();
  // Runs `calls` in a separate thread, which may stay blocked in NCCL if a process is lost.
  Status within(const char *what, std::function<NcclResult()> calls);
  struct Floats {
    float *memory;
    int64_t count; // 0: nothing is sent
  };
  // Sends data to and receives data from all other processes at once.
  NcclResult exchange(const std::function<Floats(int peer)> &sent, const std::function<Floats(int peer)> &received);
  // Returns the error; or, if a process is lost, the loss that caused it.
  Status failed(std::string message, mt_code code);
  Status failed(NcclResult result, const char *what, mt_code code = MT_DEVICE);
  // Records the first failure and ends all operations on the GPU.
  Status lose(Status why);

  CudaDevices &group_;
  ProcessGroup &peers_;
  const Nccl &nccl_;
  NcclComm comm_ = nullptr;
  Address first_ = 0; // memory of the first exchange
  Status lost_;
  std::shared_ptr<std::atomic<bool>> aborted_; // set when the end of the communicator begins
};

} // namespace mtrun::cuda
