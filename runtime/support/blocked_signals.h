// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <pthread.h>

namespace mtrun {

// While an object of this class lives, all signals are blocked in its thread. Threads that are created in this time
// inherit the mask and never handle signals: the caller's signals are delivered to the caller's threads.
class BlockedSignals {
public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  BlockedSignals(const BlockedSignals &) = delete;
  BlockedSignals &operator=(const BlockedSignals &) = delete;

private:
  sigset_t old_;
};

} // namespace mtrun
