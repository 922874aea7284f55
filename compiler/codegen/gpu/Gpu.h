// SPDX-License-Identifier: Apache-2.0
//
// Code for GPUs: every plan.kernel as a gpu.func, the same functions as PTX, as cubins and as a shared object for the
// host (docs/gpu-code.md).
#ifndef COMPILER_CODEGEN_GPU_GPU_H
#define COMPILER_CODEGEN_GPU_GPU_H

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/common/Object.h"
#include "llvm/Support/Error.h"

namespace mtc {

// The device of its targets, in --target and in plans.
inline constexpr llvm::StringLiteral gpuDevice = "cuda";

// In CodegenOptions::gpus: kernels with mma, and for tests with wgmma, as code for the host.
inline constexpr llvm::StringLiteral simulatedName = "simulated", simulatedWarpgroupsName = "simulated-wgmma";
// Compute capabilities that code can be made for, lowest first: "sm_75" ... "sm_120".
llvm::ArrayRef<llvm::StringRef> gpuArchitectures();

// What computes products where the module's precision (mt.precision) is not f32.
enum class MatrixUnit {
  fma,   // no tensor cores
  mma,   // those of a warp: sm_80 and newer
  wgmma, // those of four warps, for 16-bit operands, else as mma: sm_90
};

// The kernels of a module, and mt_sum, in one gpu.module; sets `gpu_grid` of every plan.kernel. It is the same for all
// units, but for the workgroup memory of wgmma.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
emitGpuKernels(const NormalModule &normal, const CodegenOptions &options, MatrixUnit unit = MatrixUnit::mma);

// Functions of kernels, in parts that are compiled in parallel.
using KernelModules = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;

// llvm.funcs in place of the gpu.funcs: for NVPTX, or for the host with mt_sim_thread (runtime/abi/gpu_kernel.h).
KernelModules lowerToNvvm(mlir::ModuleOp kernels);
KernelModules lowerToSimulated(mlir::ModuleOp kernels);

// One text of PTX of such modules for "sm_90" and newer ones.
llvm::Expected<std::string> compilePtx(llvm::ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules,
                                       llvm::StringRef architecture, llvm::ThreadPoolInterface &pool);

// Where ptxas is: on PATH, in $CUDA_HOME/bin, in /usr/local/cuda/bin; empty if nowhere.
std::string findPtxas();
struct Cubin {
  std::vector<char> bytes;
  std::vector<KernelUsage> usage; // of `kernels`
};
// One for each architecture, with the suffix of its name ("a": what only it has); the assembler runs for all at once.
llvm::Expected<std::vector<Cubin>> assemble(const std::string &ptxas, const std::string &ptx,
                                            llvm::ArrayRef<std::string> architectures, const std::string &suffix,
                                            llvm::ArrayRef<std::string> kernels);

} // namespace mtc

#endif
