// SPDX-License-Identifier: Apache-2.0
//
// Speed of generated kernels on one thread: GFLOP/s and percent of the measured FMA peak. Run it by hand on a quiet
// machine:
//   build/release/test/unit/codegen-bench [ROUNDS [FOLDER]]     leaves the objects in FOLDER
#include "test/unit/codegen/Harness.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <immintrin.h>

using namespace codegentest;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Smallest time of a call over many rounds.
template <typename Body> double fastest(int rounds, const Body &body) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    double start = now();
    body();
    best = std::min(best, now() - start);
  }
  return best;
}

// Twelve independent chains of FMAs; returns flops done.
__attribute__((target("avx512f"))) double chains512(int64_t steps, float *out) {
  __m512 sums[12], x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
  float start = 0;
  for (__m512 &sum : sums)
    sum = _mm512_set1_ps(start += 1);
  for (int64_t step = 0; step < steps; ++step)
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(sum, x, y);
  __m512 total = sums[0];
  for (__m512 sum : sums)
    total = _mm512_add_ps(total, sum);
  _mm512_storeu_ps(out, total);
  return steps * 12.0 * 32;
}
__attribute__((target("avx2,fma"))) double chains256(int64_t steps, float *out) {
  __m256 sums[12], x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  float start = 0;
  for (__m256 &sum : sums)
    sum = _mm256_set1_ps(start += 1);
  for (int64_t step = 0; step < steps; ++step)
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(sum, x, y);
  __m256 total = sums[0];
  for (__m256 sum : sums)
    total = _mm256_add_ps(total, sum);
  _mm256_storeu_ps(out, total);
  return steps * 12.0 * 16;
}

double peak(bool avx512) {
  float out[16];
  double flops = 0;
  double time = fastest(200, [&] { flops = avx512 ? chains512(20000, out) : chains256(20000, out); });
  return flops / time;
}

std::string shape(const std::string &rows, int64_t columns) {
  return "tensor<" + rows + "x" + std::to_string(columns) + "xf32>";
}

std::string forward(const std::string &name, int64_t depth, int64_t columns) {
  std::string x = shape("?", depth), w = shape(std::to_string(depth), columns), y = shape("?", columns),
              b = "tensor<" + std::to_string(columns) + "xf32>";
  return kernelText(name, "matmul",
                    "^bb0(%x: " + x + ", %w: " + w + ", %b: " + b + "):\n%0 = mt.matmul %x, %w : " + x + ", " + w +
                        "\n%1 = mt.add %0, %b : " + y + ", " + b + "\n%2 = mt.relu %1 : " + y + "\nmt.yield %2 : " + y);
}
std::string gradient(const std::string &name, int64_t height, int64_t columns) {
  std::string x = shape("?", height), y = shape("?", columns);
  return kernelText(name, "matmul_wgrad",
                    "^bb0(%x: " + x + ", %y: " + y + "):\n%0 = mt.matmul %x, %y transpose_a : " + x + ", " + y +
                        "\nmt.yield %0 : " + shape(std::to_string(height), columns));
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  for (int64_t shardRows : {4, 8, 16, 64}) {
    int64_t rows = shardRows * 8;
    auto codes = compile(forward("f784", 784, 256) + forward("f256", 256, 256) + forward("f10", 256, 10) +
                             forward("b10", 10, 256) + gradient("g784", 784, 256) + gradient("g256", 256, 256) +
                             gradient("g10", 256, 10),
                         {shardRows, 8, false});
    std::vector<float> x = randoms(rows * 784, 1), w = randoms(784 * 256, 2), b = randoms(256, 3),
                       y(std::max<int64_t>(rows, 784) * 256);
    for (auto &code : codes) {
      bool avx512 = code->target == "x86-64-v4";
      double most = peak(avx512);
      if (argc > 2)
        std::ofstream(std::string(argv[2]) + "/" + code->target + ".so", std::ios::binary)
            .write(code->image.data(), code->image.size());
      std::printf("%s, %d rows, peak %.1f GFLOP/s\n", code->target.c_str(), static_cast<int>(rows), most / 1e9);
      struct Case {
        const char *name;
        int64_t depth, columns;
        bool tree;
      } cases[] = {{"f784", 784, 256, false}, {"f256", 256, 256, false}, {"f10", 256, 10, false},
                   {"b10", 10, 256, false},   {"g784", 784, 256, true},  {"g256", 256, 256, true},
                   {"g10", 256, 10, true}};
      for (const Case &c : cases) {
        mt_kernel_params params{rows, 0, rows, 0, 0, nullptr, nullptr, 0};
        std::vector<void *> buffers = {x.data(), w.data(), b.data(), y.data()};
        if (c.tree)
          buffers = {x.data(), w.data(), y.data()};
        int64_t tiles = code->tiles(c.name, params);
        Guarded scratch = scratchOf(code->scratchBytes(c.name));
        params.scratch = scratch.as<void>();
        mt_kernel_fn function = code->find(c.name);
        double time = fastest(rounds, [&] { function(&params, buffers.data(), 0, tiles); });
        double speed = 2.0 * rows * c.depth * c.columns / time;
        std::printf("  %-5s %8.1f us %7.1f GFLOP/s %5.1f %%\n", c.name, time * 1e6, speed / 1e9, speed / most * 100);
      }
    }
  }
}
