// SPDX-License-Identifier: Apache-2.0
//
// What moves data between the devices of a session, as part of a graph that is recorded. An all-reduce is: each device
// owns a chunk and receives its peers' partial sums of it (gatherPartials), adds them in tree order (Capture.cpp), and
// its peers receive the sums (spreadResults).
#pragma once

#include "runtime/device/cuda/CudaDevices.h"

namespace mtrun::cuda {

// Where the parts of one all-reduce lie. Devices have the session's numbers; addresses are those of hosted ones.
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
  // Where `device` has its chunk of the partial sum of `peer`.
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

  // Recorded on the stream `links` of every hosted device, which has waited for the device's own partial sum.
  virtual Status gatherPartials(const Chunks &chunks) = 0;
  // Behind it partial sums and results are the device's own again.
  virtual Status spreadResults(const Chunks &chunks) = 0;

  // Instead of the three, for plans that ask for no order of additions: all partial sums' sum to all results, if they
  // do that.
  virtual bool adds() const { return false; }
  virtual Status allReduce(const Chunks &chunks) { return {MT_INVALID, "expected links that add, found others"}; }

  // Before the first recording; `adding`: allReduce will be in it; of at most `bytes` bytes.
  virtual Status warmUp(bool adding, uint64_t bytes) { return {}; }
  // A launch of so many runs begins; has ended.
  virtual void begin(uint64_t runs) {}
  virtual void end(uint64_t runs) {}
  // Waits until the devices are where the event was recorded. MT_LOST names who failed.
  virtual Status wait(Event event) = 0;
};

// All devices are in this process: they copy from one another, on one GPU as on several, and meet by events.
class LocalCommunicator : public Communicator {
public:
  explicit LocalCommunicator(CudaDevices &group) : group_(group), driver_(group.driver()) {}
  ~LocalCommunicator() override;
  Status warmUp(bool adding, uint64_t bytes) override;
  Status gatherPartials(const Chunks &chunks) override;
  Status spreadResults(const Chunks &chunks) override;
  Status wait(Event event) override;

private:
  Status meet(); // of all devices' `links`
  Status copy(int device, void *to, const void *from, uint64_t bytes);
  Status good(Result result, int device, const char *what, mt_code code = MT_DEVICE) const;

  float *onHost(int device) const { return reinterpret_cast<float *>(onHost_[static_cast<size_t>(device)]); }
  // The peer that a device reads `i`-th: it begins with its neighbour, so that no two read from one at a time.
  static int rotated(int device, int i, int devices) { return (device + i) % devices; }

  CudaDevices &group_;
  const Driver &driver_;
  // Pinned memory of each device, for what its peers read; empty: they read it where it is.
  std::vector<std::byte *> onHost_;
};

} // namespace mtrun::cuda
