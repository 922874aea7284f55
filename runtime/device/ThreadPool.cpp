// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ThreadPool.h"
#include "runtime/support/blocked_signals.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <system_error>

namespace mtrun {
namespace {

// The time that a waiting thread spins: several barriers' duration, and less than a time slice.
constexpr double spinMicroseconds = 50;
// The time that other threads have to begin their parts of a launch before somebody takes them.
constexpr double momentMicroseconds = 2;
// A thread whose CPU time does not grow for so long has no CPU.
constexpr double standMicroseconds = 10;
// A waiting thread looks after the others so often.
constexpr uint32_t napMicroseconds = 200;

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

int moveTo(pthread_t thread, int cpu) { // 0, or errno
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(thread, sizeof set, &set);
}

} // namespace

void useDefaultFloats() { setFloatControl(defaultControl); }

Status ThreadPool::start(int devices, int threads, bool pin, bool spin,
                         const std::function<void(int, const std::string &)> &log) {
  devices_ = devices;
  threads_ = threads;
  std::vector<int> cpus = allowedCpus();
  bool crowded = static_cast<size_t>(size()) > cpus.size();
  uint32_t pauses = !crowded && size() > 1 ? pausesFor(spinMicroseconds) : 0, spins = spin ? pauses : 0;
  spins_ = spins;
  moment_ = static_cast<uint32_t>(spins * momentMicroseconds / spinMicroseconds);
  stand_ = static_cast<uint32_t>(pauses * standMicroseconds / spinMicroseconds);
  deviceBarriers_ = std::make_unique<Barrier[]>(static_cast<size_t>(devices));
  for (int d = 0; d < devices; ++d)
    deviceBarriers_[d].reset(static_cast<uint32_t>(threads), spins);
  all_.reset(static_cast<uint32_t>(size()), spins);
  work_.reset(threads);
  seats_ = std::make_unique<Seat[]>(static_cast<size_t>(size()));

  BlockedSignals blocked; // inherited by the new threads
  workers_.reserve(static_cast<size_t>(size() - 1));
  for (int i = 1; i < size(); ++i)
    if (int error = startWorker(i)) {
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
  seats_[index].thread = thread; // read in runs alone
  return 0;
}

void ThreadPool::pinThreads(const std::vector<int> &cpus, const std::function<void(int, const std::string &)> &log) {
  pinned_ = !workers_.empty();
  CPU_ZERO(&homes_);
  seats_[0].home = cpus[0];
  for (size_t i = 0; i < workers_.size(); ++i) {
    seats_[i + 1].home = cpus[i + 1];
    CPU_SET(cpus[i + 1], &homes_);
    if (int error = moveTo(workers_[i], cpus[i + 1])) {
      pinned_ = false;
      if (log)
        log(1,
            "cannot pin a thread to CPU " + std::to_string(cpus[i + 1]) + ": " + std::system_category().message(error));
    }
  }
}

ThreadPool::~ThreadPool() {
  job_ = nullptr;
  started_.set(started_.now() + 1);
  for (pthread_t thread : workers_)
    pthread_join(thread, nullptr);
}

void ThreadPool::work(Worker worker) {
  setFloatControl(defaultControl);
  for (uint32_t run = 0;;) {
    run = waitForRun(worker.index, run);
    if (isAway(worker.index))
      moveHome(worker.index);
    seats_[worker.index].run = run;
    if (!enter(worker.index))
      continue;
    if (!job_)
      return;
    job_(context_, worker);
    leave(worker.index);
  }
}

void ThreadPool::run(Job job, void *context) {
  auto control = floatControl();
  setFloatControl(defaultControl);
  Seat &seat = seats_[0];
  seat.thread = pthread_self();
  seat.run = started_.now() + 1;
  job_ = job;
  context_ = context;
  firstGroup_ = work_.group();
  enter(0);
  started_.set(seat.run); // before the caller goes home, where it may have to wait for its CPU
  goHome(worker(0));
  job(context, worker(0));
  closeRun(seat.run);
  setFloatControl(control);
}

bool ThreadPool::enter(int index) {
  Seat &seat = seats_[index];
  seat.entries.set(seat.entries.now() + 1);
  if (!isClosed(seat.run))
    return true;
  leave(index);
  return false;
}

void ThreadPool::leave(int index) {
  Signal &entries = seats_[index].entries;
  if (uint32_t entry = entries.now(); entry % 2)
    entries.set(entry + 1);
}

// A worker that was late must not see a run that has ended: the caller reads `entries` after it has set `closed_`, and
// a worker the other way round.
void ThreadPool::closeRun(uint32_t run) {
  closed_.set(run);
  for (int i = 1; i < size(); ++i) {
    Signal &entries = seats_[i].entries;
    uint32_t entry = entries.now();
    if (entry % 2 == 0 || entries.spin(entry, spins_))
      continue;
    while (entries.now() == entry) {
      giveCpu(i);
      entries.sleep(entry, napMicroseconds);
    }
  }
  if (seats_[0].moved)
    moveHome(0);
  leave(0);
}

uint32_t ThreadPool::waitForRun(int index, uint32_t last) {
  started_.spin(last, spins_);
  for (;;) {
    if (uint32_t run = started_.now(); run != last)
      return run;
    bool open = !isClosed(last) && pinned_; // only the caller can be late
    if (open && enter(index)) {
      giveCpu(0);
      leave(index);
    }
    started_.sleep(last, open ? napMicroseconds : 0);
  }
}

bool ThreadPool::waitForGroup(const Worker &worker, uint32_t group) {
  Signal &completed = work_.completed();
  if (completed.spin(group, spins_))
    return true;
  while (completed.now() == group) {
    lookAfterOthers(worker.index);
    leave(worker.index);
    completed.sleep(group, pinned_ ? napMicroseconds : 0);
    if (!enter(worker.index))
      return false;
  }
  return true;
}

bool ThreadPool::isAway(int index) const {
  if (!pinned_)
    return false;
  int cpu = sched_getcpu();
  return seats_[index].moved.load(std::memory_order_relaxed) != atHome ||
         (index == 0 ? cpu >= 0 && CPU_ISSET(cpu, &homes_) : cpu != seats_[index].home);
}

bool ThreadPool::leaveForHome(int index) {
  leave(index);
  moveHome(index);
  return enter(index);
}

// The caller's thread may run on the same CPUs afterwards as before.
void ThreadPool::moveHome(int index) {
  Seat &seat = seats_[index];
  pthread_t self = pthread_self();
  int before = atHome;
  if (!seat.moved.compare_exchange_strong(before, moving))
    while (seat.moved.load(std::memory_order_acquire) == moving)
      pauseFor(1);
  if (index == 0) {
    if (before == atHome)
      pthread_getaffinity_np(self, sizeof callerCpus_, &callerCpus_);
    if (CPU_ISSET(seat.home, &callerCpus_))
      moveTo(self, seat.home);
    pthread_setaffinity_np(self, sizeof callerCpus_, &callerCpus_);
  } else {
    moveTo(self, seat.home);
  }
  seat.moved.store(atHome, std::memory_order_release);
}

void ThreadPool::lookAfterOthers(int index) {
  if (!pinned_ || looking_.test_and_set(std::memory_order_acquire))
    return;
  for (int i = 0; i < size(); ++i)
    if (i != index)
      giveCpu(i);
  looking_.clear(std::memory_order_release);
}

void ThreadPool::giveCpu(int index) {
  Seat &seat = seats_[index];
  if (!pinned_ || seat.entries.now() % 2 == 0)
    return;
  clockid_t clock;
  timespec before, after;
  if (pthread_getcpuclockid(seat.thread, &clock) || clock_gettime(clock, &before))
    return;
  pauseFor(stand_);
  int home = atHome;
  if (clock_gettime(clock, &after) || after.tv_sec != before.tv_sec || after.tv_nsec != before.tv_nsec ||
      !seat.moved.compare_exchange_strong(home, moving))
    return;
  if (index == 0)
    pthread_getaffinity_np(seat.thread, sizeof callerCpus_, &callerCpus_);
  moveTo(seat.thread, sched_getcpu());
  seat.moved.store(given, std::memory_order_release);
}

} // namespace mtrun
