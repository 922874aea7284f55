// SPDX-License-Identifier: Apache-2.0
//
// Code generation: machine code for every `plan.kernel` of a module, with the interface of runtime/abi/kernel.h.
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

// Number of elements of a tile of every elementwise kernel, and of `mt_sum`.
inline constexpr int64_t elementwiseElementsPerTile = 2048;

// Largest number of channels of an attention head for GPU kernels, which keep the results of a head in registers.
inline constexpr int64_t maxGpuHeadChannels = 128;

// Sizes in bytes of the temporaries of a CPU kernel of kind rows or single: the largest size to which fusion lets a
// kernel grow, so that the temporaries of a sample stay in a cache, and the largest size of a single op, which limits
// the memory of a thread.
inline constexpr int64_t fusedTemporaryBytes = 1 << 22, maxTemporaryBytes = 1 << 29;

struct CodegenOptions {
  std::vector<std::string> targets; // "x86-64-v3", "x86-64-v4", "native"; best first
  int64_t shardRows = 1;            // samples of a shard: `shard_rows` of the module's `mt.compilation`
  bool fast = false;                // a device has a single shard
  bool doubles = false;             // numbers are f64
  std::vector<std::string> gpus;    // "sm_90" ..., "simulated"
  bool keepGpuKernels = false;      // the gpu.func ops stay in the module
};

// Options with the shard rows and the mode of the module.
CodegenOptions codegenOptions(mlir::ModuleOp module, std::vector<std::string> targets);

// Resources that a kernel uses on a GPU: registers, stack and spill bytes of a thread; workgroup memory of a block in
// all, and the part of it that the launch allocates.
struct KernelUsage {
  int64_t registers = 0, sharedBytes = 0, stackBytes = 0, spillBytes = 0, dynamicSharedBytes = 0;
};

// Machine code of all kernels for one target.
struct TargetCode {
  // The name in CodegenOptions; for "native" the name of the CPU; "cuda:sm_90", "cuda:ptx" or "cuda:simulated".
  std::string name;
  std::vector<std::string> features; // required CPU features, by LLVM's names; for a GPU its architecture
  std::vector<char> elf;          // a shared object without dependencies, a cubin, or PTX; its symbols are the kernels
  std::string device = "cpu";     // "cpu" or gpuDevice
  std::vector<KernelUsage> usage; // of the kernels and mt_sum; empty if unknown
  std::vector<int64_t> scratch = {}; // bytes of scratch memory of each kernel; CPUs only
};

// Sets the grid attributes of every plan.kernel (rows_per_tile, inner_tiles or elements_per_tile). Fails, with an error
// at the kernel, if a kernel violates the contract of its kind.
mlir::LogicalResult setGrids(mlir::ModuleOp module);

// An error that was reported where it is, such as at a kernel.
struct Reported : llvm::ErrorInfo<Reported> {
  static char ID;
  void log(llvm::raw_ostream &stream) const override { stream << "an error that was reported"; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

// A task that generates one or several TargetCodes. It runs once, in a thread of its own, and its parts run in the
// threads of a pool.
struct CodeTask {
  std::function<llvm::Expected<std::vector<TargetCode>>(llvm::ThreadPoolInterface &pool)> run;
  bool assembles = false; // the task starts a child process, so its parts run before the parts of other tasks
};

// One task per CPU target, in the order of the options, which generates code for all kernels and `mt_sum`. The bytes
// depend only on the module. Errors are emitted at the kernel that cannot be compiled.
mlir::FailureOr<std::vector<CodeTask>> prepareCode(mlir::ModuleOp module, const CodegenOptions &options);
// Tasks for GPUs (docs/gpu-code.md): a cubin for each architecture if ptxas is found, PTX, and code for the simulated
// driver. Sets `gpu_grid` of every plan.kernel. Notes and errors go to the module's diagnostics.
mlir::FailureOr<std::vector<CodeTask>> prepareGpuCode(mlir::ModuleOp module, const CodegenOptions &options);
// Bytes of scratch memory of the kernel that needs most on the CPU targets of the options, as the plan will state it.
// The kernels are emitted for this, but not compiled.
mlir::FailureOr<int64_t> maxScratch(mlir::ModuleOp module, const CodegenOptions &options);
// Runs the tasks and returns their code, in order. Nothing else may use the module's context in the meantime.
mlir::FailureOr<std::vector<TargetCode>> runTasks(mlir::ModuleOp module, llvm::ArrayRef<CodeTask> tasks);

// The pass of the stage (`plan-codegen`): sets the grids, and stores code in `result`, best targets first. `result`
// outlives the pass.
std::unique_ptr<mlir::Pass> createCodegenPass(llvm::ArrayRef<std::string> cpus, llvm::ArrayRef<std::string> gpus,
                                              std::vector<TargetCode> &result);

// Prepares and runs the tasks, for CPUs and for GPUs.
mlir::FailureOr<std::vector<TargetCode>> generateCode(mlir::ModuleOp module, const CodegenOptions &options);
mlir::FailureOr<std::vector<TargetCode>> generateGpuCode(mlir::ModuleOp module, const CodegenOptions &options);
// The `gpu_grid` of mt_sum.
mlir::plan::GpuGridAttr sumGpuGrid(mlir::MLIRContext *context);

} // namespace mtc

#endif
