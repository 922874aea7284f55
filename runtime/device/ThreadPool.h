// SPDX-License-Identifier: Apache-2.0
//
// The threads of a group of CPU devices: T threads for each of N devices. Worker 0 is the thread that calls run(); the
// other threads live as long as the pool.
#pragma once

#include "runtime/device/Barrier.h"
#include "runtime/support/status.h"

#include <functional>
#include <memory>
#include <pthread.h>
#include <string>
#include <vector>

namespace mtrun {

struct Worker {
  int device;
  int thread; // index in the device's threads
  int index;  // device * T + thread
};

// In the calling thread floating point rounds to nearest, keeps denormals and masks exceptions, as in all workers.
void useDefaultFloats();

class ThreadPool {
public:
  using Job = void (*)(void *context, const Worker &worker);

  // Starts N * T - 1 threads. `pin`: pins each to its own CPU; `spin`: threads spin before they sleep. Both apply only
  // if the calling thread may run on at least as many CPUs as there are workers. MT_NO_MEMORY.
  Status start(int devices, int threads, bool pin, bool spin, const std::function<void(int, const std::string &)> &log);
  ~ThreadPool();

  int devices() const { return devices_; }
  int threads() const { return threads_; }
  int size() const { return devices_ * threads_; }

  // Runs `job` on every worker, in the calling thread as worker 0, and returns when all are done. In all workers
  // floating point rounds to nearest, keeps denormals and masks exceptions; the caller's settings are restored.
  void run(Job job, void *context);

  // For jobs: barriers of the workers of one device, and of all workers.
  void waitForDevice(int device) { deviceBarriers_[device].wait(); }
  void waitForAll() { all_.wait(); }

private:
  int startWorker(int index); // 0, or errno
  void work(Worker worker);
  Worker worker(int index) const { return {index / threads_, index % threads_, index}; }
  void pinThreads(const std::vector<int> &cpus, const std::function<void(int, const std::string &)> &log);

  int devices_ = 1, threads_ = 1;
  std::vector<pthread_t> workers_;
  std::unique_ptr<Barrier[]> deviceBarriers_;
  Barrier all_;       // barrier inside a job
  Barrier start_;     // barrier between jobs: all workers wait here for the next job
  Job job_ = nullptr; // null: the threads end
  void *context_ = nullptr;
};

} // namespace mtrun
