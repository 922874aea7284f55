// SPDX-License-Identifier: Apache-2.0
//
// Messages between the processes of a session. Two messages from one process to another with equal tags arrive in the
// order in which they were sent. A transport is used by one thread at a time. It knows nothing of sums.
#pragma once

#include "runtime/support/status.h"

#include <cstddef>

namespace mtrun {

class Transport {
public:
  virtual ~Transport() = default;

  virtual int process() const = 0;
  virtual int processes() const = 0;

  // Begin a message of `bytes` bytes and return at once. The memory belongs to the transport until test() returns done.
  // 0 <= tag <= maxTag. MT_LOST: the message cannot be sent or received.
  static constexpr int maxTag = 32767;
  virtual Status send(int peer, int tag, const void *data, size_t bytes, int &request) = 0;
  virtual Status receive(int peer, int tag, void *data, size_t bytes, int &request) = 0;
  // Makes progress, and returns whether a message has ended; then the request is no longer valid. `received`: a
  // received message may be shorter than expected, and this is its size; null: it must have the expected size. MT_LOST:
  // the message failed, or it has another size.
  virtual Status test(int request, bool &done, size_t *received = nullptr) = 0;
  // Ends all requests, whose memory may be freed afterwards. For a transport whose peers are lost.
  virtual void abandon() = 0;
};

} // namespace mtrun
