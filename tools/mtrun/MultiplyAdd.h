// SPDX-License-Identifier: Apache-2.0
//
// A loop of single-precision multiply-adds that reaches the peak rate of the CPU.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mtrun_tool {

constexpr int multiplyAddChains = 12; // number of independent chains, which hides the latency of a multiply-add

// Hides a chain's value from the optimizer. A macro, because only inside the function is the instruction set enabled.
#define MTC_KEEP(value) asm volatile("" : "+v"(value))

#if defined(__x86_64__)
__attribute__((target("avx512f"))) inline double multiplyAdd512(int64_t rounds) {
  __m512 chains[multiplyAddChains], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (__m512 &chain : chains)
    chain = b;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma unroll
    for (__m512 &chain : chains)
      chain = _mm512_fmadd_ps(chain, a, b);
#pragma unroll
    for (__m512 &chain : chains)
      MTC_KEEP(chain);
  }
  return 2.0 * 16 * multiplyAddChains * static_cast<double>(rounds);
}

__attribute__((target("avx2,fma"))) inline double multiplyAdd256(int64_t rounds) {
  __m256 chains[multiplyAddChains], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (__m256 &chain : chains)
    chain = b;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma unroll
    for (__m256 &chain : chains)
      chain = _mm256_fmadd_ps(chain, a, b);
#pragma unroll
    for (__m256 &chain : chains)
      MTC_KEEP(chain);
  }
  return 2.0 * 8 * multiplyAddChains * static_cast<double>(rounds);
}

// Runs `rounds` rounds of multiply-adds in the widest registers of this CPU and returns the FLOPs; 0: not supported.
inline double multiplyAdd(int64_t rounds) {
  if (__builtin_cpu_supports("avx512f"))
    return multiplyAdd512(rounds);
  return __builtin_cpu_supports("fma") ? multiplyAdd256(rounds) : 0;
}
#else
inline double multiplyAdd(int64_t) { return 0; }
#endif

#undef MTC_KEEP

} // namespace mtrun_tool
