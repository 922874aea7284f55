// SPDX-License-Identifier: Apache-2.0
//
// peak THREADS: measured single-precision FMA peak of this machine in FLOPs a second, each thread on a CPU of its own.
// Twelve independent chains a thread hide the latency of FMA; the best of five runs counts.
#include "tools/mtrun/MultiplyAdd.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int64_t rounds = 4'000'000;

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (threads < 1 || threads > 1024) {
    std::fprintf(stderr, "peak: expected a number of threads from 1 to 1024, found '%s'\n", argv[1]);
    return 2;
  }
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::atomic<int> ready = 0;
    std::vector<double> flops(threads), begin(threads), end(threads);
    std::vector<std::thread> workers;
    auto now = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        pin(t);
        for (++ready; ready < threads;) {
        }
        begin[t] = now();
        flops[t] = mtrun_tool::multiplyAdd(rounds);
        end[t] = now();
      });
    double total = 0;
    for (int t = 0; t < threads; ++t) {
      workers[t].join();
      total += flops[t];
    }
    best = std::max(
        best, total / (*std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end())));
  }
  std::printf("%.4e\n", best);
  return 0;
}
