// SPDX-License-Identifier: Apache-2.0
//
// Kernels of 32-bit integers as GPU code, against CPU code: sums that wrap, extremes, paddings.
#include "test/unit/codegen/GpuFixture.h"

using namespace codegentest;

namespace {

TEST_F(Gpu, Integers) {
  // Of all 32 bits; some are equal.
  auto numbers = [](int64_t i) { return static_cast<int32_t>(static_cast<uint32_t>(i % 5 ? i : i / 2) * 2654435761u); };
  for (int64_t size : {1, 5, 64, 130}) {
    const std::string x = "tensor<?x19x" + std::to_string(size) + "xi32>", y = "tensor<?x19xi32>",
                      z = "tensor<?x" + std::to_string(size) + "xi32>";
    std::string kernels;
    for (std::string kind : {"sum", "max", "min"})
      kernels += kernelText(kind, "rows",
                            "^bb0(%x: " + x + ", %w: " + x + "):\n%m = mt.mul %x, %w : " + x + ", " + x +
                                "\n%s = mt.minimum %m, %x : " + x + ", " + x + "\n%r = mt.reduce " + kind +
                                ", %s over [2] : " + x + "\n%q = mt.reduce " + kind + ", %s over [1] : " + x +
                                "\n%a = mt.argmax %s : " + x + "\nmt.yield %r, %q, %a : " + y + ", " + z + ", " + y);
    kernels += kernelText("pad", "rows",
                          "^bb0(%x: " + x + "):\n%0 = mt.pad %x low = [1, 0] high = [0, 2] value = -3.0 : " + x +
                              "\nmt.yield %0 : tensor<?x20x" + std::to_string(size + 2) + "xi32>");
    auto module = parse(kernels);
    ASSERT_TRUE(module);
    EXPECT_EQ(compareKernels(*module, 3, false, /*rows=*/2, 1, /*beyond=*/-1, numbers).problems, "") << size;
  }
}

} // namespace
