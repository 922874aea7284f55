// SPDX-License-Identifier: Apache-2.0
//
// Code for GPUs: every plan.kernel as a gpu.func, and these functions as PTX, as cubins and as a shared object for the
// host (docs/gpu-code.md).
#ifndef COMPILER_CODEGEN_GPU_GPU_H
#define COMPILER_CODEGEN_GPU_GPU_H

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/common/Object.h"
#include "llvm/Support/Error.h"

namespace mtc {

// Name of the device of GPU targets, for --target and in plans.
inline constexpr llvm::StringLiteral gpuDevice = "cuda";

// Targets in CodegenOptions::gpus: kernels with mma, or (for tests) with wgmma, as code for the host.
inline constexpr llvm::StringLiteral simulatedName = "simulated", simulatedWarpgroupsName = "simulated-wgmma";
// A target without code: the plan has the grids of GPUs, for reports alone (benchmarks/gpu/account). No device takes
// it.
inline constexpr llvm::StringLiteral gridsName = "grids";
// Compute capabilities for which code can be generated, lowest first: "sm_75" ... "sm_120".
llvm::ArrayRef<llvm::StringRef> gpuArchitectures();

// Unit that computes products if the module's precision is not f32.
enum class MatrixUnit {
  fma,   // FMAs; the architecture has no tensor cores
  mma,   // tensor cores of a warp: sm_80 and newer
  wgmma, // tensor cores of four warps for 16-bit operands, otherwise as mma: sm_90
};

// Attribute of the functions whose code depends on the unit.
inline constexpr llvm::StringLiteral ofUnitName = "mtc.of_unit";
// Emits the kernels of a module, and mt_sum, into one gpu.module; sets `gpu_grid` of every plan.kernel. The grid is the
// same for all units, except for the workgroup memory of wgmma. `unitAlone`: emits the kernels alone whose code depends
// on the unit.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitGpuKernels(const NormalModule &normal,
                                                                  const CodegenOptions &options,
                                                                  MatrixUnit unit = MatrixUnit::mma,
                                                                  bool unitAlone = false);

// Functions of kernels, in parts that are compiled in parallel.
using KernelModules = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;

// Lower gpu.funcs to llvm.funcs: for NVPTX, either the functions whose code depends on the unit or the others; or for
// the host, with mt_sim_thread (runtime/abi/gpu_kernel.h).
KernelModules lowerToNvvm(mlir::ModuleOp kernels, bool ofUnit);
KernelModules lowerToSimulated(mlir::ModuleOp kernels);

// Compiles the modules that lowerToNvvm returns to one PTX text for `architecture` and newer architectures. The parts
// have the numbers from `first` on, which texts that are joined must not have in common.
llvm::Expected<std::string> compilePtx(llvm::ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules, size_t first,
                                       llvm::StringRef architecture, llvm::ThreadPoolInterface &pool);
// Appends the kernels of a text to another one, which keeps its header.
void joinPtx(std::string &text, llvm::StringRef more);

// Path of ptxas: on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin; empty if not found.
std::string findPtxas();
struct Cubin {
  std::vector<char> bytes;
  std::vector<KernelUsage> usage; // of `kernels`
};
// One cubin per architecture, whose name gets the suffix ("a": features of this architecture alone). The assembler runs
// for all architectures concurrently.
llvm::Expected<std::vector<Cubin>> assemble(const std::string &ptxas, const std::string &ptx,
                                            llvm::ArrayRef<std::string> architectures, const std::string &suffix,
                                            llvm::ArrayRef<std::string> kernels);

} // namespace mtc

#endif
