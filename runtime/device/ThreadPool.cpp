// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ThreadPool.h"
#include "runtime/support/blocked_signals.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sched.h>
#include <system_error>

namespace mtrun {
namespace {

// The time that a waiting thread spins: several barriers' duration, and less than a time slice.
constexpr double spinMicroseconds = 50;

#if defined(__x86_64__)
constexpr unsigned defaultControl = 0x1f80; // MXCSR: all exceptions masked, round to nearest, denormals kept
unsigned floatControl() { return __builtin_ia32_stmxcsr(); }
void setFloatControl(unsigned control) { __builtin_ia32_ldmxcsr(control); }
#elif defined(__aarch64__)
constexpr unsigned long defaultControl = 0; // FPCR
unsigned long floatControl() {
  unsigned long control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void setFloatControl(unsigned long control) { asm volatile("msr fpcr, %0" ::"r"(control)); }
#else
#error "no floating-point control for this architecture"
#endif

// Returns the CPUs on which the calling thread may run. Its current CPU is first, and is left to the calling thread.
std::vector<int> allowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        cpus.push_back(cpu);
  auto current = std::find(cpus.begin(), cpus.end(), sched_getcpu());
  if (current != cpus.end())
    std::rotate(cpus.begin(), current, cpus.end());
  return cpus;
}

} // namespace

void useDefaultFloats() { setFloatControl(defaultControl); }

Status ThreadPool::start(int devices, int threads, bool pin, bool spin,
                         const std::function<void(int, const std::string &)> &log) {
  devices_ = devices;
  threads_ = threads;
  std::vector<int> cpus = allowedCpus();
  bool crowded = static_cast<size_t>(size()) > cpus.size();
  uint32_t spins = spin && !crowded && size() > 1 ? pausesFor(spinMicroseconds) : 0;
  deviceBarriers_ = std::make_unique<Barrier[]>(static_cast<size_t>(devices));
  for (int d = 0; d < devices; ++d)
    deviceBarriers_[d].reset(static_cast<uint32_t>(threads), spins);
  all_.reset(static_cast<uint32_t>(size()), spins);
  start_.reset(static_cast<uint32_t>(size()), spins);

  BlockedSignals blocked; // inherited by the new threads
  workers_.reserve(static_cast<size_t>(size() - 1));
  for (int i = 1; i < size(); ++i)
    if (int error = startWorker(i)) {
      // The threads that did start are waiting at the barrier: reduce it to their number, so that they can end.
      start_.reset(static_cast<uint32_t>(i), 0);
      devices_ = 1, threads_ = i;
      return {MT_NO_MEMORY,
              "expected " + std::to_string(devices * threads) + " threads, the system started " + std::to_string(i) +
                  ": no memory for more stacks, or a limit (ulimit -v, -u): " + std::system_category().message(error)};
    }
  if (pin && !crowded)
    pinThreads(cpus, log);
  return {};
}

int ThreadPool::startWorker(int index) {
  // A fixed stack size, independent of `ulimit -s`: kernels use at most MT_KERNEL_STACK_BYTES, the runtime's frames
  // less, and thread-local variables of the host process the rest.
  constexpr size_t stackBytes = size_t{1} << 20;
  struct Start {
    ThreadPool *pool;
    Worker worker;
  };
  auto start = std::make_unique<Start>(Start{this, worker(index)});
  auto run = [](void *argument) -> void * {
    std::unique_ptr<Start> start(static_cast<Start *>(argument));
    ThreadPool *pool = start->pool;
    Worker worker = start->worker;
    start.reset();
    pool->work(worker);
    return nullptr;
  };
  pthread_attr_t attributes;
  if (int error = pthread_attr_init(&attributes))
    return error;
  pthread_t thread;
  int error = pthread_attr_setstacksize(&attributes, stackBytes);
  if (!error)
    error = pthread_create(&thread, &attributes, run, start.get());
  pthread_attr_destroy(&attributes);
  if (error)
    return error;
  (void)start.release(); // now owned by the thread
  workers_.push_back(thread);
  return 0;
}

void ThreadPool::pinThreads(const std::vector<int> &cpus, const std::function<void(int, const std::string &)> &log) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[i + 1], &set);
    int error = pthread_setaffinity_np(workers_[i], sizeof(set), &set);
    if (error && log)
      log(1,
          "cannot pin a thread to CPU " + std::to_string(cpus[i + 1]) + ": " + std::system_category().message(error));
  }
}

ThreadPool::~ThreadPool() {
  if (workers_.empty())
    return;
  job_ = nullptr;
  start_.wait();
  for (pthread_t thread : workers_)
    pthread_join(thread, nullptr);
}

void ThreadPool::work(Worker worker) {
  setFloatControl(defaultControl);
  for (;;) {
    start_.wait();
    if (!job_)
      return;
    job_(context_, worker);
    all_.wait();
  }
}

void ThreadPool::run(Job job, void *context) {
  auto control = floatControl();
  setFloatControl(defaultControl);
  job_ = job;
  context_ = context;
  start_.wait();
  job(context, worker(0));
  all_.wait();
  setFloatControl(control);
}

} // namespace mtrun
