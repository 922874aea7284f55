// SPDX-License-Identifier: Apache-2.0
//
// Moves data between the devices of a session, in operations that are recorded in a graph. An all-reduce has three
// parts: each device owns a chunk and receives the other devices' partial sums of it (gatherPartials), adds them in
// tree order (Capture.cpp), and sends the result of its chunk to the other devices (spreadResults).
#pragma once

#include "runtime/device/cuda/CudaDevices.h"

namespace mtrun::cuda {

// The addresses of one all-reduce. Devices have the session's indices; only devices of this process have addresses.
class Chunks {
public:
  Chunks(const BoundProgram &program, uint32_t allReduce);

  int devices() const { return devices_; } // of the session
  int hostedBegin() const { return program_.firstDevice; }
  int hostedEnd() const { return program_.firstDevice + static_cast<int>(program_.devices.size()); }
  int64_t elements() const { return reduce_.elements; }
  int64_t begin(int device) const;
  int64_t size(int device) const { return begin(device + 1) - begin(device); }
  uint64_t bytes(int device) const { return static_cast<uint64_t>(size(device)) * sizeof(float); }
  float *partial(int device) const { return reduce_.partials[hosted(device)]; }
  float *result(int device) const { return reduce_.results[hosted(device)]; }
  // Returns the address in `device` of its chunk of `peer`'s partial sum.
  float *node(int device, int peer) const;

private:
  size_t hosted(int device) const { return static_cast<size_t>(device - program_.firstDevice); }

  const BoundProgram &program_;
  const BoundAllReduce &reduce_;
  int devices_;
};

class Communicator {
public:
  virtual ~Communicator() = default;

  // Records copies on the stream `links` of every device of this process, after the device's own partial sum.
  virtual Status gatherPartials(const Chunks &chunks) = 0;
  // After spreadResults(), partial sums and results may be overwritten.
  virtual Status spreadResults(const Chunks &chunks) = 0;

  // For plans that do not fix the order of additions: adds all partial sums into all results in one operation, if
  // adds() is true.
  virtual bool adds() const { return false; }
  virtual Status allReduce(const Chunks &chunks) {
    return {MT_INVALID, "expected a communicator that adds, found another"};
  }

  // Must be called before the first recording. `adding`: allReduce() will be recorded; `bytes`: the sizes of the plan's
  // all-reduces, each once, in ascending order.
  virtual Status warmUp(bool adding, const std::vector<uint64_t> &bytes) { return {}; }
  // Mark the begin and the end of a launch of `runs` runs.
  virtual void begin(uint64_t runs) {}
  virtual void end(uint64_t runs) {}
  // Waits for an event. MT_LOST names the process that failed.
  virtual Status wait(Event event) = 0;
};

// The communicator for devices in one process, on one or several GPUs: devices copy from each other and synchronize by
// events.
class LocalCommunicator : public Communicator {
public:
  explicit LocalCommunicator(CudaDevices &group) : group_(group), driver_(group.driver()) {}
  ~LocalCommunicator() override;
  Status warmUp(bool adding, const std::vector<uint64_t> &bytes) override;
  Status gatherPartials(const Chunks &chunks) override;
  Status spreadResults(const Chunks &chunks) override;
  Status wait(Event event) override;

private:
  Status barrier(); // makes the devices' `links` streams wait for each other
  Status copy(int device, void *to, const void *from, uint64_t bytes);
  Status good(Result result, int device, const char *what, mt_code code = MT_DEVICE) const;

  float *onHost(int device) const { return reinterpret_cast<float *>(onHost_[static_cast<size_t>(device)]); }
  // Returns the device that `device` reads as the `i`-th. Each begins with the next device, so no two devices read from
  // the same one at a time.
  static int rotated(int device, int i, int devices) { return (device + i) % devices; }

  CudaDevices &group_;
  const Driver &driver_;
  // By device: pinned memory for data that other devices read; empty if GPUs can read each other's memory.
  std::vector<std::byte *> onHost_;
};

} // namespace mtrun::cuda
