// SPDX-License-Identifier: Apache-2.0
//
// peak THREADS: measured single-precision FMA peak of this machine in FLOPs a second, each thread on a CPU of its own.
// Twelve independent chains a thread hide the latency of FMA; the best of five runs counts.
#include <immintrin.h>
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

constexpr int64_t kRounds = 4'000'000;
constexpr int kChains = 12;

// Keeps the compiler from seeing through a chain; a macro, because inside the function its instruction set is known.
#define KEEP(value) asm volatile("" : "+v"(value))

__attribute__((target("avx512f"))) double run512() {
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

__attribute__((target("avx2,fma"))) double run256() {
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
  auto run = __builtin_cpu_supports("avx512f") ? run512 : run256;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::atomic<int> ready = 0;
    std::vector<double> flops(threads), begin(threads), end(threads);
    std::vector<std::thread> team;
    auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        pin(t);
        for (++ready; ready < threads;) {
        }
        begin[t] = now();
        flops[t] = run();
        end[t] = now();
      });
    double total = 0;
    for (int t = 0; t < threads; ++t) {
      team[t].join();
      total += flops[t];
    }
    best = std::max(best, total / (*std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end())));
  }
  std::printf("%.4e\n", best);
  return 0;
}
