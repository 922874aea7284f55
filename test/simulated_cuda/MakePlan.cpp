// SPDX-License-Identifier: Apache-2.0
//
// make-gpu-plan FILE: writes the plan of TestPlan.h, with code for CPUs and simulated GPUs.
#include "TestPlan.h"

#include <cstdio>

int main(int count, char **arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: make-gpu-plan FILE\n");
    return 2;
  }
  mtrun::test::TestPlanShape shape;
  shape.gpu = true;
  std::vector<uint8_t> bytes = mtrun::test::makePlan(shape);
  FILE *file = std::fopen(arguments[1], "wb");
  bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return file && std::fclose(file) == 0 && written ? 0 : 1;
}
