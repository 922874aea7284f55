// SPDX-License-Identifier: Apache-2.0
//
// A process a device: partial sums and results go by NCCL, as copies alone, so that the bits are those of one process.
// One communicator, used by one thread, in one order in all processes. docs/gpu-code.md says why it cannot hang.
#pragma once

#include "runtime/device/ProcessGroup.h"
#include "runtime/device/cuda/Communicator.h"
#include "runtime/device/cuda/Nccl.h"

#include <atomic>
#include <functional>

namespace mtrun::cuda {

class NcclCommunicator : public Communicator {
public:
  // Opens NCCL and connects this process' device with all others, which do the same. MT_NO_DEVICE, MT_DEVICE, MT_LOST.
  static Status open(CudaDevices &group, ProcessGroup &peers, std::unique_ptr<Communicator> &links);
  // After the graphs that have its calls.
  ~NcclCommunicator() override;

  Status gatherPartials(const Chunks &chunks) override;
  Status spreadResults(const Chunks &chunks) override;
  bool adds() const override { return true; }
  Status allReduce(const Chunks &chunks) override;
  Status warmUp(bool adding, uint64_t bytes) override;
  void begin(uint64_t runs) override { peers_.begin(runs); }
  void end(uint64_t runs) override { peers_.end(runs); }
  Status wait(Event event) override;

private:
  NcclCommunicator(CudaDevices &group, ProcessGroup &peers, const Nccl &nccl)
      : group_(group), peers_(peers), nccl_(nccl) {}
  Status connect();
  // Runs `calls` on a thread of its own, which may stay behind in NCCL when a process is lost meanwhile.
  Status within(const char *what, std::function<NcclResult()> calls);
  struct Floats {
    float *memory;
    int64_t count; // 0: nothing
  };
  // What each other process is sent, and what comes from it, at once.
  NcclResult exchange(const std::function<Floats(int peer)> &sent, const std::function<Floats(int peer)> &received);
  // What failed; or the process whose loss made it, if one is lost.
  Status failed(std::string message, mt_code code);
  Status failed(NcclResult result, const char *what, mt_code code = MT_DEVICE);
  // The first failure stays; what still runs on the GPU is ended.
  Status lose(Status why);

  CudaDevices &group_;
  ProcessGroup &peers_;
  const Nccl &nccl_;
  NcclComm comm_ = nullptr;
  Address first_ = 0; // memory of the first exchange
  Status lost_;
  std::shared_ptr<std::atomic<bool>> aborted_; // set when the communicator's end has begun
};

} // namespace mtrun::cuda
