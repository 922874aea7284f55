// SPDX-License-Identifier: Apache-2.0
//
// The threads of a group of CPU devices: T threads for each of N devices. Worker 0 is the thread that calls run(); the
// other threads live as long as the pool.
//
// Other processes may take a thread's CPU at any time. A run does not wait for a thread that is late to begin, and the
// threads that wait for one that has begun give it their CPU: it does there what the others wait for, and then goes
// back to its own.
#pragma once

#include "runtime/device/SharedWork.h"
#include "runtime/support/status.h"

#include <functional>
#include <memory>
#include <pthread.h>
#include <sched.h>
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

  // Runs `job` on the workers, in the calling thread as worker 0, and returns when all that began it are done. A worker
  // that is late does not begin it at all: jobs of which every worker has a part end with waitForAll(). In all workers
  // floating point rounds to nearest, keeps denormals and masks exceptions; the caller's settings are restored.
  void run(Job job, void *context);

  // For jobs: barriers of the workers of one device, and of all workers.
  void waitForDevice(int device) { deviceBarriers_[device].wait(); }
  void waitForAll() { all_.wait(); }

  // For jobs of a pool of one device: the work that its threads share, and its first group in this run.
  SharedWork &work() { return work_; }
  uint32_t firstGroup() const { return firstGroup_; }
  // Waits a moment, in which a thread that is not late begins its part.
  bool expectGroup(uint32_t group) const { return work_.completed().spin(group, moment_); }
  // Waits until the group is complete. False: the run has ended, and the job must return at once.
  bool waitForGroup(const Worker &worker, uint32_t group);
  // Moves the worker back to its own CPU. False: likewise.
  bool goHome(const Worker &worker) { return !isAway(worker.index) || leaveForHome(worker.index); }

private:
  enum : int { atHome, moving, given };
  // The place of a worker in the pool.
  struct alignas(64) Seat {
    Signal entries;                  // odd: the worker is in the run `run`
    std::atomic<int> moved = atHome; // whether another worker gave it its CPU
    uint32_t run = 0;
    pthread_t thread = {};
    int home = -1; // its CPU
  };

  int startWorker(int index); // 0, or errno
  void work(Worker worker);
  Worker worker(int index) const { return {index / threads_, index % threads_, index}; }
  void pinThreads(const std::vector<int> &cpus, const std::function<void(int, const std::string &)> &log);

  bool enter(int index); // false: the run has ended
  void leave(int index);
  uint32_t waitForRun(int index, uint32_t last); // returns its number
  void closeRun(uint32_t run);
  bool isClosed(uint32_t run) const { return static_cast<int32_t>(closed_.now() - run) >= 0; } // modulo 2^32
  bool isAway(int index) const;
  bool leaveForHome(int index);
  void moveHome(int index);
  // Gives the others of the pool the calling thread's CPU if they are in the run and have none.
  void lookAfterOthers(int index);
  void giveCpu(int index);

  int devices_ = 1, threads_ = 1;
  std::vector<pthread_t> workers_;
  std::unique_ptr<Barrier[]> deviceBarriers_;
  Barrier all_; // barrier inside a job
  SharedWork work_;
  // Pauses: before a thread sleeps, before it takes others' work, and in which a running thread's CPU time grows.
  uint32_t spins_ = 0, moment_ = 0, stand_ = 0;

  std::unique_ptr<Seat[]> seats_; // by worker
  bool pinned_ = false;           // each worker has a CPU of its own
  std::atomic_flag looking_;      // a worker looks after the others
  cpu_set_t homes_ = {};          // of the workers but the caller, which is not pinned
  cpu_set_t callerCpus_ = {};     // on which the caller may run, if it was moved

  Signal started_, closed_; // numbers of runs
  uint32_t firstGroup_ = 1; // of the run
  Job job_ = nullptr;       // null: the threads end
  void *context_ = nullptr;
};

} // namespace mtrun
