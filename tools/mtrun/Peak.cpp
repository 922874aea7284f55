// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Peak.h"
#include "tools/mtrun/MultiplyAdd.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace mtrun_tool {

constexpr int repeats = 5;
constexpr int64_t multiplyAddRounds = 400'000;
constexpr int64_t minCopied = int64_t{64} << 20; // minimum bytes that a thread moves in a run
constexpr int64_t minBlock = int64_t{1} << 16, maxBlock = int64_t{256} << 20;

// Returns the work per second of all threads together. `work` returns the amount of work that it has done.
static double rate(int threads, const std::function<double(int)> &work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::atomic<int> ready = 0;
    std::vector<double> done(static_cast<size_t>(threads));
    std::vector<Clock::time_point> begin(done.size()), end(done.size());
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        auto i = static_cast<size_t>(t);
        for (++ready; ready < threads;)
          std::this_thread::yield();
        begin[i] = Clock::now();
        done[i] = work(t);
        end[i] = Clock::now();
      });
    double total = 0;
    for (size_t t = 0; t < workers.size(); ++t) {
      workers[t].join();
      total += done[t];
    }
    std::chrono::duration<double> seconds =
        *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
    best = std::max(best, total / seconds.count());
  }
  return best;
}

Peak measurePeak(int threads, int64_t block) {
  int64_t half = std::clamp(block, minBlock, maxBlock) / threads / 2 / 64 * 64 + 64;
  std::vector<std::vector<char>> blocks(static_cast<size_t>(threads), std::vector<char>(static_cast<size_t>(2 * half)));
  auto copy = [&](int thread) {
    char *from = blocks[static_cast<size_t>(thread)].data();
    int64_t rounds = minCopied / (2 * half) + 1;
    for (int64_t i = 0; i < rounds; ++i) {
      memcpy(from + half, from, static_cast<size_t>(half));
      asm volatile("" : : "r"(from) : "memory");
    }
    return static_cast<double>(rounds * 2 * half);
  };
  return {rate(threads, [](int) { return multiplyAdd(multiplyAddRounds); }), rate(threads, copy)};
}

} // namespace mtrun_tool
