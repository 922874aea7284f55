// SPDX-License-Identifier: Apache-2.0
//
// Speed of convolutions on one thread: GFLOP/s of forward, gradient to the images, gradient to the kernel. Run it by
// hand on a quiet machine:
//   build/release/test/unit/conv-bench [ROUNDS [FOLDER]]     leaves the objects in FOLDER
#include "test/unit/codegen/Harness.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace codegentest;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Case {
  const char *name;
  int64_t size, channels, taps, filters, stride, low, high, outputs;
};

std::string tensor(const std::string &first, int64_t a, int64_t b, int64_t c) {
  return "tensor<" + first + "x" + std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(c) + "xf32>";
}

std::string kernels(const Case &c) {
  std::string x = tensor("?", c.size, c.size, c.channels), y = tensor("?", c.outputs, c.outputs, c.filters),
              w = tensor(std::to_string(c.taps), c.taps, c.channels, c.filters), stride = std::to_string(c.stride),
              low = std::to_string(c.low), high = std::to_string(c.high), name = c.name;
  std::string how =
      " strides = [" + stride + ", " + stride + "] padding = [" + low + ", " + high + ", " + low + ", " + high + "] : ";
  return kernelText(name + "_f", "conv",
                    "^bb0(%x: " + x + ", %w: " + w + "):\n%0 = mt.conv2d %x, %w" + how + x + ", " + w +
                        "\n%1 = mt.relu %0 : " + y + "\nmt.yield %1 : " + y) +
         kernelText(name + "_i", "conv",
                    "^bb0(%y: " + y + ", %w: " + w + "):\n%0 = mt.conv2d_input_gradient %y, %w" + how + y + ", " + w +
                        " to " + x + "\nmt.yield %0 : " + x) +
         kernelText(name + "_k", "conv_wgrad",
                    "^bb0(%x: " + x + ", %y: " + y + "):\n%0 = mt.conv2d_kernel_gradient %x, %y" + how + x + ", " + y +
                        " to " + w + "\nmt.yield %0 : " + w);
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const int64_t shardRows = 2, rows = 16;
  const std::vector<Case> cases = {
      {"c28x1x3x12", 28, 1, 3, 12, 1, 1, 1, 28},        {"c28x12x6x24s2", 28, 12, 6, 24, 2, 0, 0, 12},
      {"c12x24x6x32s2", 12, 24, 6, 32, 2, 2, 2, 6},     {"c28x1x3x32", 28, 1, 3, 32, 1, 0, 0, 26},
      {"c13x32x3x64", 13, 32, 3, 64, 1, 0, 0, 11},      {"c32x3x3x16", 32, 3, 3, 16, 1, 1, 1, 32},
      {"c32x16x3x16", 32, 16, 3, 16, 1, 1, 1, 32},      {"c16x32x3x32", 16, 32, 3, 32, 1, 1, 1, 16},
      {"c8x64x3x64", 8, 64, 3, 64, 1, 1, 1, 8},         {"c32x16x3x32s2", 32, 16, 3, 32, 2, 0, 1, 16},
      {"c32x16x1x32s2", 32, 16, 1, 32, 2, 0, 0, 16},    {"c56x64x3x64", 56, 64, 3, 64, 1, 1, 1, 56},
      {"c28x128x3x128", 28, 128, 3, 128, 1, 1, 1, 28},  {"c14x256x3x256", 14, 256, 3, 256, 1, 1, 1, 14},
      {"c7x512x3x512", 7, 512, 3, 512, 1, 1, 1, 7},     {"c5x32x3x32", 5, 32, 3, 32, 1, 1, 1, 5},
      {"c4x64x3x64", 4, 64, 3, 64, 1, 1, 1, 4},         {"c64x16x3x24", 64, 16, 3, 24, 1, 1, 1, 64},
      {"c14x1024x1x256", 14, 1024, 1, 256, 1, 0, 0, 14}};
  std::string text;
  for (const Case &c : cases)
    text += kernels(c);
  auto codes = compile(text, {shardRows, 8, false});
  int64_t most = 56 * 56 * 64 * rows;
  std::vector<float> x = randoms(most, 1), w = randoms(512 * 512 * 9, 2), y = randoms(most, 3);
  for (auto &code : codes) {
    if (argc > 2)
      std::ofstream(std::string(argv[2]) + "/" + code->target + ".so", std::ios::binary)
          .write(code->image.data(), code->image.size());
    std::printf("%s, %d samples\n", code->target.c_str(), static_cast<int>(rows));
    for (const Case &c : cases) {
      mt_kernel_params params{rows, 0, rows, 0, 0, nullptr, nullptr, 0};
      double flops = 2.0 * rows * c.outputs * c.outputs * c.taps * c.taps * c.channels * c.filters;
      std::printf("  %-16s", c.name);
      for (const char *kind : {"_f", "_i", "_k"}) {
        std::vector<void *> buffers = {x.data(), w.data(), y.data()};
        if (kind[1] == 'i')
          buffers = {y.data(), w.data(), x.data()};
        if (kind[1] == 'k')
          buffers = {x.data(), y.data(), w.data()};
        std::string name = std::string(c.name) + kind;
        mt_kernel_fn function = code->find(name);
        int64_t tiles = code->tiles(name, params);
        Guarded scratch = scratchOf(code->scratchBytes(name));
        params.scratch = scratch.as<void>();
        double best = 1e9;
        for (int round = 0; round < rounds; ++round) {
          double start = now();
          function(&params, buffers.data(), 0, tiles);
          best = std::min(best, now() - start);
        }
        std::printf(" %s %8.1f us %6.1f GFLOP/s ", kind + 1, best * 1e6, flops / best / 1e9);
      }
      std::printf("\n");
    }
  }
}
