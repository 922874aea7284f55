// SPDX-License-Identifier: Apache-2.0
//
// Code that the two lowerings of kernels share.
#ifndef COMPILER_CODEGEN_GPU_LOWERING_H
#define COMPILER_CODEGEN_GPU_LOWERING_H

#include "compiler/codegen/common/Object.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <memory>

namespace mtc {

// Replacements for the gpu and nvvm ops of one kernel.
class Lowering {
public:
  virtual ~Lowering() = default;
  // Arguments after `params` and `segments`.
  virtual llvm::SmallVector<mlir::Type> arguments(mlir::OpBuilder &builder) { return {}; }
  virtual void begin(mlir::LLVM::LLVMFuncOp function, mlir::gpu::GPUFuncOp from) = 0;
  // The thread's index in the block, an i32.
  virtual mlir::Value threadId(mlir::ImplicitLocOpBuilder &builder) = 0;
  virtual mlir::Value blockId(mlir::ImplicitLocOpBuilder &builder, mlir::gpu::Dimension dimension) = 0;
  virtual mlir::Value memory(mlir::ImplicitLocOpBuilder &builder, mlir::MemRefType type) = 0;
  virtual void barrier(mlir::ImplicitLocOpBuilder &builder) = 0;
  virtual void cast(mlir::LLVM::AddrSpaceCastOp op) {}
  virtual void assume(mlir::LLVM::AssumeOp op) {}
  virtual void access(mlir::Operation *op, mlir::Value address, mlir::Type type, std::optional<uint64_t> alignment) {}
  virtual void multiply(mlir::NVVM::MmaOp op) {}
  virtual void assembly(mlir::LLVM::InlineAsmOp op) {}
  virtual void loadMatrices(mlir::NVVM::LdMatrixOp op) {}
  virtual void copy(mlir::NVVM::CpAsyncOp op) {}
  virtual void orderCopies(mlir::Operation *op) {}
  virtual void round(mlir::NVVM::ConvertFloatToTF32Op op) {}
  virtual void shuffle(mlir::NVVM::ShflOp op) {}
  virtual void vote(mlir::NVVM::VoteSyncOp op) {}
  virtual void warpBarrier(mlir::NVVM::SyncWarpOp op) {}
  virtual void pack(mlir::Operation *op, mlir::Type half) {}
  virtual void approximateExp2(mlir::LLVM::CallIntrinsicOp op) {}
};

// Lowers gpu.funcs to llvm.funcs, each with a Lowering of its own.
KernelModules lowerKernels(mlir::ModuleOp kernels, llvm::function_ref<std::unique_ptr<Lowering>()> lowering,
                           llvm::function_ref<bool(mlir::gpu::GPUFuncOp)> isWanted);

} // namespace mtc

#endif
