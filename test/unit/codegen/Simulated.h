// SPDX-License-Identifier: Apache-2.0
//
// Runs simulated GPU code (target cuda:simulated): the threads of a block are fibers that stop at barriers. And
// compares a module's kernels on a GPU with those on a CPU.
#ifndef TEST_UNIT_CODEGEN_SIMULATED_H
#define TEST_UNIT_CODEGEN_SIMULATED_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/abi/gpu_kernel.h"
#include <functional>
#include <string>
#include <vector>

namespace codegentest {

// The attribute gpu_grid.
struct GpuGrid {
  int64_t threads, rowsPerTile, innerTiles, elementsPerTile, sharedBytes;
  int64_t tiles(const mt_kernel_params &params, int64_t count) const;
};

// Runs every block of one segment, and one more, which has nothing to do. Workgroup memory starts as NaNs. Aborts where
// threads of a block do not all come to a barrier.
void runSimulated(mt_sim_kernel_fn kernel, const GpuGrid &grid, const mt_kernel_params &params,
                  const std::vector<void *> &buffers, int64_t count);

struct KernelComparison {
  std::string problems; // a line each; none: equal
  int64_t kernels = 0, exact = 0;
  int64_t tails = 0, sums = 0; // tails, and such whose sums the epilogue of their head adds
};
// Every plan.kernel of the module on random operands of `rows` rows: simulated GPU code and CPU code agree within 1e-5,
// and to the bit where no sum inside a row is involved. A launch with a tail is run as one kernel, and the results of
// the tail are compared with CPU code that reads what the GPU code computed. Buffers of the GPU begin at a multiple of
// 16 and end less than 16 bytes before an unreadable page, or, with `beyond` of 0 or more, begin so many bytes beyond a
// multiple of 4096: then an access that is not aligned ends the process with exit code 7 and a message. `integers`
// gives the elements of operands of integers, where random ones are not enough. `simulated` is which simulated code
// (codegen/gpu/Gpu.h).
KernelComparison compareKernels(mlir::ModuleOp module, int64_t shardRows, bool fast, int64_t rows, unsigned seed,
                                int64_t beyond = -1, const std::function<int32_t(int64_t index)> &integers = nullptr,
                                const std::string &simulated = "simulated");

} // namespace codegentest

#endif
