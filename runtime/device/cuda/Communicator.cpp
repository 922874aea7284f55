// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Communicator.h"

#include "runtime/device/Collectives.h"
#include "runtime/support/device_memory.h"

namespace mtrun::cuda {

Chunks::Chunks(const BoundProgram &program, uint32_t allReduce)
    : program_(program), reduce_(program.allReduces[allReduce]), devices_(program.sessionDevices()) {}

int64_t Chunks::begin(int device) const { return chunkBegin(reduce_.elements, device, devices_); }

float *Chunks::node(int device, int peer) const {
  if (peer == device)
    return partial(device) + begin(device);
  uint64_t room = stagingElements(static_cast<uint64_t>(reduce_.elements), static_cast<uint64_t>(devices_));
  return program_.staging[hosted(device)] + static_cast<int64_t>(room) / devices_ * peer;
}

Status LocalCommunicator::good(Result result, int device, const char *what, mt_code code) const {
  return result == success ? Status()
                           : failure(driver_, result, group_.device(device).gpu->title() + ": " + what, code);
}

Status LocalCommunicator::copy(int device, void *to, const void *from, uint64_t bytes) {
  if (bytes == 0)
    return {};
  if (!group_.makeCurrent(device))
    return group_.health();
  return good(driver_.memcpyAsync(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes,
                                  group_.device(device).links),
              device, "cannot record a copy");
}

Status LocalCommunicator::barrier() {
  const char *what = "cannot record a wait";
  for (int d = 0; d < group_.devices(); ++d) {
    if (!group_.makeCurrent(d))
      return group_.health();
    if (Status status = good(driver_.eventRecord(group_.device(d).event, group_.device(d).links), d, what);
        !status.ok())
      return status;
  }
  for (int d = 0; d < group_.devices(); ++d)
    for (int peer = 0; peer < group_.devices(); ++peer) {
      if (peer == d)
        continue;
      if (!group_.makeCurrent(d))
        return group_.health();
      if (Status status = good(driver_.streamWaitEvent(group_.device(d).links, group_.device(peer).event, 0), d, what);
          !status.ok())
        return status;
    }
  return {};
}

Status LocalCommunicator::wait(Event event) {
  return good(driver_.eventSynchronize(event), 0, "the GPU failed in a step", MT_LOST);
}

LocalCommunicator::~LocalCommunicator() {
  for (std::byte *memory : onHost_)
    (void)driver_.memFreeHost(memory);
}

Status LocalCommunicator::warmUp(bool, const std::vector<uint64_t> &bytes) {
  for (int d = 0; d < group_.devices() && group_.devices() > 1 && !group_.peersReach() && !bytes.empty(); ++d) {
    void *memory = nullptr;
    if (!group_.makeCurrent(d))
      return group_.health();
    if (Status status =
            good(driver_.memHostAlloc(&memory, bytes.back(), hostPortable), d, "cannot pin the host's memory");
        !status.ok())
      return status;
    onHost_.push_back(static_cast<std::byte *>(memory));
  }
  return {};
}

Status LocalCommunicator::gatherPartials(const Chunks &chunks) {
  for (int d = 0; d < static_cast<int>(onHost_.size()); ++d)
    if (Status status = copy(d, onHost(d), chunks.partial(d), static_cast<uint64_t>(chunks.elements()) * sizeof(float));
        !status.ok())
      return status;
  if (Status status = barrier(); !status.ok()) // wait until all partial sums are complete
    return status;
  for (int d = 0; d < chunks.devices(); ++d)
    for (int i = 1; i < chunks.devices(); ++i) {
      int peer = rotated(d, i, chunks.devices());
      const float *partial = onHost_.empty() ? chunks.partial(peer) : onHost(peer);
      if (Status status = copy(d, chunks.node(d, peer), partial + chunks.begin(d), chunks.bytes(d)); !status.ok())
        return status;
    }
  return {};
}

// In host memory a device's sums overwrite its own chunk of its partial sum, which no other device reads.
Status LocalCommunicator::spreadResults(const Chunks &chunks) {
  for (int d = 0; d < static_cast<int>(onHost_.size()); ++d)
    if (Status status = copy(d, onHost(d) + chunks.begin(d), chunks.result(d) + chunks.begin(d), chunks.bytes(d));
        !status.ok())
      return status;
  if (Status status = barrier(); !status.ok()) // wait until every chunk of the result is complete on its owner
    return status;
  for (int d = 0; d < chunks.devices(); ++d)
    for (int i = 1; i < chunks.devices(); ++i) {
      int peer = rotated(d, i, chunks.devices());
      const float *result = onHost_.empty() ? chunks.result(peer) : onHost(peer);
      if (Status status =
              copy(d, chunks.result(d) + chunks.begin(peer), result + chunks.begin(peer), chunks.bytes(peer));
          !status.ok())
        return status;
    }
  return barrier(); // wait until other devices have read the partial sums and the results
}

} // namespace mtrun::cuda
