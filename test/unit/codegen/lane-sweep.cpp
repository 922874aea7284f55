// SPDX-License-Identifier: Apache-2.0
//
// Largest errors of exp, log, tanh ... over every float:
//   build/release/test/unit/lane-sweep [STRIDE]     1: all 2^32 of them
#include "test/unit/codegen/LaneSweep.h"
#include <cstdio>
#include <cstdlib>

using namespace codegentest;

int main(int argc, char **argv) {
  uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  auto codes = compile(laneKernels());
  for (const LaneFunction &function : laneFunctions()) {
    Sweep found = sweep(*codes.front(), function, stride);
    std::printf("%-8s %.3f ulp at %.9g; %llu wrong specials%s", function.name, found.worst, found.at,
                static_cast<unsigned long long>(found.wrong), found.wrong ? "" : "\n");
    if (found.wrong)
      std::printf(", the last at %.9g\n", found.wrongAt);
  }
}
