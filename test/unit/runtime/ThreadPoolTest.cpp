// SPDX-License-Identifier: Apache-2.0
//
// Threads share work, and are late on purpose.
#include "runtime/device/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace mtrun {
namespace {

// A run of groups of two launches, in which each part adds one to its element of the group.
struct Run {
  ThreadPool &pool;
  int groups;
  int late = -1;                    // this worker does not begin before the others are done
  std::vector<int> elements;        // by group, launch, part
  std::vector<int> computedBy = {}; // likewise: the worker
  std::atomic<bool> done = false;

  void operator()(const Worker &worker) {
    SharedWork &work = pool.work();
    const int threads = pool.threads();
    if (worker.index == late)
      while (!done)
        std::this_thread::yield();
    for (int g = 0; g < groups; ++g) {
      uint32_t group = pool.firstGroup() + static_cast<uint32_t>(g), parts = 0;
      for (int i = 0; i < threads; ++i) {
        int owner = (worker.thread + i) % threads;
        for (uint32_t launch; (launch = work.take(group, owner, 2)) < 2; ++parts) {
          size_t at = static_cast<size_t>((g * 2 + static_cast<int>(launch)) * threads + owner);
          elements[at] += g == 0 ? 1 : elements[static_cast<size_t>((g - 1) * 2 * threads + owner)];
          computedBy[at] = worker.index;
        }
      }
      work.finish(group, 2, parts);
      if (!pool.goHome(worker) || !pool.waitForGroup(worker, group))
        return;
    }
    if (late == 1 && worker.index == 0)
      done = true; // the run cannot end while the late thread is in it
  }
};

void runOnce(ThreadPool &pool, int groups, int late) {
  auto size = static_cast<size_t>(groups * 2 * pool.threads());
  Run run{pool, groups, late, std::vector<int>(size), std::vector<int>(size)};
  pool.run([](void *context, const Worker &worker) { (*static_cast<Run *>(context))(worker); }, &run);
  EXPECT_EQ(std::ranges::count(run.elements, 1), std::ssize(run.elements));
  if (late >= 0)
    EXPECT_EQ(std::ranges::count(run.computedBy, late), 0);
}

TEST(ThreadPool, WorkIsComputedOnce) {
  for (int threads : {1, 2, 3, 5})
    for (bool pin : {false, true}) {
      ThreadPool pool;
      ASSERT_TRUE(pool.start(1, threads, pin, /*spin=*/true, {}).ok());
      for (int run = 0; run < 200; ++run)
        runOnce(pool, 1 + run % 7, -1);
    }
}

TEST(ThreadPool, NobodyWaitsForALateThread) {
  for (int threads : {2, 3}) {
    ThreadPool pool;
    ASSERT_TRUE(pool.start(1, threads, /*pin=*/true, /*spin=*/true, {}).ok());
    for (int run = 0; run < 20; ++run)
      runOnce(pool, 5, 1);
  }
}

// A run ends without a worker that never came, and a later run has it again.
TEST(ThreadPool, RunsEndWithoutLateThreads) {
  ThreadPool pool;
  ASSERT_TRUE(pool.start(1, 2, /*pin=*/true, /*spin=*/false, {}).ok());
  std::atomic<int> runs = 0;
  for (int run = 0; run < 1000; ++run)
    pool.run(
        [](void *context, const Worker &worker) { *static_cast<std::atomic<int> *>(context) += worker.index == 0; },
        &runs);
  EXPECT_EQ(runs, 1000);
  struct All {
    ThreadPool &pool;
    std::atomic<int> workers = 0;
  } context{pool};
  pool.run(
      [](void *context, const Worker &) {
        auto &all = *static_cast<All *>(context);
        ++all.workers;
        all.pool.waitForAll();
      },
      &context);
  EXPECT_EQ(context.workers, 2);
}

// The caller may run on the same CPUs after runs beside a thread that keeps its CPU busy.
TEST(ThreadPool, TheCallerKeepsItsCpus) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2)
    GTEST_SKIP() << "needs two CPUs";
  ThreadPool pool;
  ASSERT_TRUE(pool.start(1, 2, /*pin=*/true, /*spin=*/true, {}).ok());
  std::atomic<bool> stop = false;
  int cpu = sched_getcpu();
  std::thread busy([&stop, cpu] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    while (!stop)
      ;
  });
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end)
    runOnce(pool, 7, -1);
  stop = true;
  busy.join();
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

} // namespace
} // namespace mtrun
