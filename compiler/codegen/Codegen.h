// SPDX-License-Identifier: Apache-2.0
//
// The last stage before the plan is written: machine code for every `plan.kernel` of a module, by runtime/abi/kernel.h.
#ifndef COMPILER_CODEGEN_CODEGEN_H
#define COMPILER_CODEGEN_CODEGEN_H

#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/ThreadPool.h"
#include <functional>
#include <string>
#include <vector>

namespace mtc {

// Elements of a tile of every elementwise kernel, of `mt_sum` too.
inline constexpr int64_t elementwiseElementsPerTile = 2048;

// The most channels of a head of an attention that kernels for GPUs take: results of a head are in registers.
inline constexpr int64_t maxGpuHeadChannels = 128;

// Bytes of values that a CPU kernel of kind rows or single keeps for itself.
inline constexpr int64_t maxTemporaryBytes = 1 << 22;

struct CodegenOptions {
  std::vector<std::string> targets; // "x86-64-v3", "x86-64-v4", "native"; best first
  int64_t shardRows = 1;            // samples of a shard, the module's mt.shard_rows
  bool fast = false;                // a device is one shard
  std::vector<std::string> gpus;    // "sm_90" ..., "simulated"
  bool keepGpuKernels = false;      // the gpu.funcs stay in the module
};

// With rows of a shard and mode of the module.
CodegenOptions codegenOptions(mlir::ModuleOp module, std::vector<std::string> targets);

// What a kernel takes of a GPU: of a thread, workgroup memory of a block, all of it or none given by the launch.
struct KernelUsage {
  int64_t registers = 0, sharedBytes = 0, stackBytes = 0, spillBytes = 0, dynamicSharedBytes = 0;
};

// Machine code of all kernels for one instruction set.
struct TargetCode {
  // As in CodegenOptions; for "native" the CPU's name; "cuda:sm_90", "cuda:ptx", "cuda:simulated".
  std::string name;
  std::vector<std::string> features; // CPU features that must be there, LLVM's names; a GPU's architecture
  std::vector<char> elf;             // a shared object that needs none, a cubin, or PTX; kernels by their symbols
  std::string device = "cpu";        // or gpuDevice
  std::vector<KernelUsage> usage;    // of the kernels and mt_sum, where it is known
  std::vector<int64_t> scratch = {}; // of the kernels, bytes: of CPUs alone
};

// Sets the grid attributes of every plan.kernel (rows_per_tile, inner_tiles or elements_per_tile). An error at a kernel
// that does not keep the contract of its kind.
mlir::LogicalResult setGrids(mlir::ModuleOp module);

// What makes one piece of code, or several: runs in a thread of its own, once, and its parts in the threads of a pool.
struct CodeTask {
  std::function<llvm::Expected<std::vector<TargetCode>>(llvm::ThreadPoolInterface &pool)> run;
  bool assembles = false; // a child process follows, so its parts come before those of other tasks
};

// A task for each CPU target, in the order of the options: writes all kernels and `mt_sum`. Same module, same bytes.
// What cannot be compiled is reported at the kernel.
mlir::FailureOr<std::vector<CodeTask>> prepareCode(mlir::ModuleOp module, const CodegenOptions &options);
// The same for GPUs (docs/gpu-code.md): a cubin for each architecture where ptxas is found, PTX, code for the simulated
// driver. Sets `gpu_grid` of every plan.kernel. Notes and errors go to the module's diagnostics.
mlir::FailureOr<std::vector<CodeTask>> prepareGpuCode(mlir::ModuleOp module, const CodegenOptions &options);
// Bytes of scratch of the kernel that takes most on the CPU targets of the options, as the plan will have them. Kernels
// are written for it, not compiled.
mlir::FailureOr<int64_t> maxScratch(mlir::ModuleOp module, const CodegenOptions &options);
// Runs the tasks; their code, in order. Nothing else may use the module's context meanwhile.
mlir::FailureOr<std::vector<TargetCode>> runTasks(mlir::ModuleOp module, llvm::ArrayRef<CodeTask> tasks);

// The stage as a pass (`plan-codegen`): sets the grids, and fills `result`, which outlives it, best targets first.
std::unique_ptr<mlir::Pass> createCodegenPass(llvm::ArrayRef<std::string> cpus, llvm::ArrayRef<std::string> gpus,
                                              std::vector<TargetCode> &result);

// Both steps for CPUs, and for GPUs.
mlir::FailureOr<std::vector<TargetCode>> generateCode(mlir::ModuleOp module, const CodegenOptions &options);
mlir::FailureOr<std::vector<TargetCode>> generateGpuCode(mlir::ModuleOp module, const CodegenOptions &options);
// `gpu_grid` of mt_sum.
mlir::plan::GpuGridAttr sumGpuGrid(mlir::MLIRContext *context);

} // namespace mtc

#endif
