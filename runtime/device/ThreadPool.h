// SPDX-License-Identifier: Apache-2.0
//
// The threads of a group of CPU devices: T for each of N devices. Worker 0 is whoever calls run(); the others live as
// long as the pool.
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
  int thread; // of the device's pool
  int index;  // device * T + thread
};

class ThreadPool {
public:
  using Job = void (*)(void *context, const Worker &worker);

  // Starts N * T - 1 threads. They are pinned, each to a CPU of its own, and spin before they sleep, if asked to and if
  // the calling thread may run on as many CPUs as there are workers. MT_DEVICE.
  Status start(int devices, int threads, bool pin, bool spin, const std::function<void(int, const std::string &)> &log);
  ~ThreadPool();

  int devices() const { return devices_; }
  int threads() const { return threads_; }
  int size() const { return devices_ * threads_; }

  // Runs `job` on every worker, the calling thread as worker 0, and returns when all are done. On all of them floating
  // point rounds to nearest, keeps denormals and masks exceptions; the caller's own setting is back after the return.
  void run(Job job, void *context);

  // For jobs: waits for the workers of one device, of all.
  void waitForDevice(int device) { deviceBarriers_[device].wait(); }
  void waitForAll() { all_.wait(); }

private:
  int startWorker(int index); // 0 or the system's error
  void work(Worker worker);
  Worker worker(int index) const { return {index / threads_, index % threads_, index}; }
  void pinThreads(const std::vector<int> &cpus, const std::function<void(int, const std::string &)> &log);

  int devices_ = 1, threads_ = 1;
  std::vector<pthread_t> workers_;
  std::unique_ptr<Barrier[]> deviceBarriers_;
  Barrier all_;       // inside a job
  Barrier start_;     // between jobs: all workers meet to begin one
  Job job_ = nullptr; // null: end the thread
  void *context_ = nullptr;
};

} // namespace mtrun
