// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mtrun_tool {

constexpr int kRepeats = 5;
constexpr int kChains = 12; // independent ones, to hide the latency of a multiply-add
constexpr int64_t kRounds = 400'000;
constexpr int64_t kCopied = int64_t{64} << 20; // bytes a thread moves in a run, at least
constexpr int64_t kLeastBlock = int64_t{1} << 16, kLargestBlock = int64_t{256} << 20;

// Keeps the compiler from seeing through a chain; a macro, because inside the function its instruction set is known.
#define KEEP(value) asm volatile("" : "+v"(value))

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double multiplyAdd512() {
  __m512 chains[kChains], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (__m512 &chain : chains)
    chain = b;
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma unroll
    for (__m512 &chain : chains)
      chain = _mm512_fmadd_ps(chain, a, b);
#pragma unroll
    for (__m512 &chain : chains)
      KEEP(chain);
  }
  return 2.0 * 16 * kChains * kRounds;
}

__attribute__((target("avx2,fma"))) static double multiplyAdd256() {
  __m256 chains[kChains], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (__m256 &chain : chains)
    chain = b;
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma unroll
    for (__m256 &chain : chains)
      chain = _mm256_fmadd_ps(chain, a, b);
#pragma unroll
    for (__m256 &chain : chains)
      KEEP(chain);
  }
  return 2.0 * 8 * kChains * kRounds;
}

static double multiplyAdd() {
  if (__builtin_cpu_supports("avx512f"))
    return multiplyAdd512();
  return __builtin_cpu_supports("fma") ? multiplyAdd256() : 0;
}
#else
static double multiplyAdd() { return 0; }
#endif

// Work a second of all threads together, each doing `work`, which says how much it did.
static double rate(int threads, const std::function<double(int)> &work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::atomic<int> ready = 0;
    std::vector<double> done(static_cast<size_t>(threads));
    std::vector<Clock::time_point> begin(done.size()), end(done.size());
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        auto i = static_cast<size_t>(t);
        for (++ready; ready < threads;)
          std::this_thread::yield();
        begin[i] = Clock::now();
        done[i] = work(t);
        end[i] = Clock::now();
      });
    double total = 0;
    for (size_t t = 0; t < team.size(); ++t) {
      team[t].join();
      total += done[t];
    }
    std::chrono::duration<double> seconds =
        *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
    best = std::max(best, total / seconds.count());
  }
  return best;
}

Peak measurePeak(int threads, int64_t block) {
  int64_t half = std::clamp(block, kLeastBlock, kLargestBlock) / threads / 2 / 64 * 64 + 64;
  std::vector<std::vector<char>> blocks(static_cast<size_t>(threads), std::vector<char>(static_cast<size_t>(2 * half)));
  auto copy = [&](int thread) {
    char *from = blocks[static_cast<size_t>(thread)].data();
    int64_t rounds = kCopied / (2 * half) + 1;
    for (int64_t i = 0; i < rounds; ++i) {
      memcpy(from + half, from, static_cast<size_t>(half));
      asm volatile("" : : "r"(from) : "memory");
    }
    return static_cast<double>(rounds * 2 * half);
  };
  return {rate(threads, [](int) { return multiplyAdd(); }), rate(threads, copy)};
}

} // namespace mtrun_tool
