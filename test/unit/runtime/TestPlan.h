// SPDX-License-Identifier: Apache-2.0
//
// A plan made by hand: a linear model (kernels.c) with every kind of step, space and wait that the runtime knows.
#pragma once

#include "runtime/abi/plan_file.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mtrun::test {

struct TestPlanShape {
  uint64_t batch = 21;
  uint32_t shards = 8;
  uint64_t features = 37;
  bool gpu = false; // code for simulated GPUs, too
  bool ptx = false; // and that is for real ones
};

// Threads of a block of each kernel.
inline constexpr uint32_t gpuThreads = 4;

// Kernels that tests launch by themselves, as indices into the plan's.
enum : uint32_t { SumPartials = 7, Probe = 8, Rotate = 9, DoubleRows = 10 };

// The tables, before they are written. Programs: init, train_step (x, y, optional sample_weight), predict (x, out).
// Variables: w (F32, features), b (F32, 1), rate (F32), iteration (I32). Targets "first", which no CPU can run, and
// "any".
mt::plan::PlanT makeTables(const TestPlanShape &shape);

// The file's bytes; `change` may edit the tables first.
std::vector<uint8_t> makePlan(const TestPlanShape &shape = {},
                              const std::function<void(mt::plan::PlanT &)> &change = {});

// Makes the hashes of header and tables fit bytes that were changed.
void rehash(std::vector<uint8_t> &bytes);

// The bytes of a file of kernels: kernels.so, gpu_kernels.so or gpu_kernels.ptx, in the folder that MTC_TEST_KERNELS
// names or where they were built.
std::vector<uint8_t> kernelFile(const char *name = "kernels.so");

} // namespace mtrun::test
