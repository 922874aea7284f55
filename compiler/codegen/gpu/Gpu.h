// SPDX-License-Identifier: Apache-2.0
//
// Code for GPUs: every plan.kernel as a gpu.func, the same functions as PTX, as cubins and as a shared object for the
// host (docs/gpu-code.md).
#ifndef COMPILER_CODEGEN_GPU_GPU_H
#define COMPILER_CODEGEN_GPU_GPU_H

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/common/Kernel.h"
#include "llvm/Support/Error.h"

namespace mtc {

// The device of its targets, in --target and in plans.
inline constexpr llvm::StringLiteral gpuDevice = "cuda";

inline constexpr llvm::StringLiteral simulatedName = "simulated";
// Compute capabilities that code can be made for, lowest first: "sm_75" ... "sm_120".
llvm::ArrayRef<llvm::StringRef> gpuArchitectures();

// The kernels of a module, and mt_sum, in one gpu.module; sets `gpu_grid` of every plan.kernel.
// With `tensor` products run on tensor cores where the module's precision (mt.precision) is not f32: sm_80 and newer.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
emitGpuKernels(const NormalModule &normal, const CodegenOptions &options, bool tensor = true);

// llvm.funcs in place of the gpu.funcs: for NVPTX, or for the host with mt_sim_thread (runtime/abi/gpu_kernel.h).
mlir::OwningOpRef<mlir::ModuleOp> lowerToNvvm(mlir::ModuleOp kernels);
mlir::OwningOpRef<mlir::ModuleOp> lowerToSimulated(mlir::ModuleOp kernels);

// PTX of such a module for "sm_90" and newer ones.
llvm::Expected<std::string> compilePtx(mlir::ModuleOp module, llvm::StringRef architecture);

// Where ptxas is: on PATH, in $CUDA_HOME/bin, in /usr/local/cuda/bin; empty if nowhere.
std::string findPtxas();
struct Cubin {
  std::vector<char> bytes;
  std::vector<KernelUsage> usage; // of `kernels`
};
// One for each architecture; the assembler runs for all at once.
llvm::Expected<std::vector<Cubin>> assemble(const std::string &ptxas, const std::string &ptx,
                                            llvm::ArrayRef<std::string> architectures,
                                            llvm::ArrayRef<std::string> kernels);

} // namespace mtc

#endif
