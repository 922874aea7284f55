// SPDX-License-Identifier: Apache-2.0
//
// One kernel on its way to code, and what the code generators for CPUs and GPUs both ask of its body.
#ifndef COMPILER_CODEGEN_COMMON_KERNEL_H
#define COMPILER_CODEGEN_COMMON_KERNEL_H

#include "compiler/codegen/common/Emitter.h"
#include "compiler/codegen/common/LineForm.h"
#include "compiler/codegen/common/Shapes.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

namespace mtc {

// How a kernel's tiles are counted (runtime/abi/plan.fbs). The same for all targets.
struct Grid {
  int64_t rowsPerTile = 0, innerTiles = 1, elementsPerTile = 0;
};

struct Kernel {
  Emitter &emit;
  mlir::plan::KernelOp op; // body normalised (normalise, below)
  mlir::mt::KernelKind kind;
  Grid grid;
  int64_t shardRows;
  bool fast;
  mlir::Value params, buffers, tileBegin, tileEnd; // the function's arguments
  LineForm form = {};                              // of the body

  mlir::Block &body() { return op.getBody().front(); }
  mlir::OperandRange yields() { return body().getTerminator()->getOperands(); }
  mlir::Value buffer(int64_t index) { return emit.loadPointer(buffers, index); }
  mlir::Value argumentBuffer(int64_t index) { return buffer(index); }
  mlir::Value resultBuffer(int64_t index) { return buffer(body().getNumArguments() + index); }
  // Fields of mt_kernel_params, i64.
  mlir::Value rows() { return emit.loadInteger(params, 0); }
  mlir::Value firstRow() { return emit.loadInteger(params, 1); }
  mlir::Value globalRows() { return emit.loadInteger(params, 2); }
  mlir::Value count() { return emit.loadInteger(params, 3); }
  mlir::Value seed() { return emit.loadInteger(params, 4); }
  // What mt.batch_size is: an f32.
  mlir::Value batchSize();
};

// A copy of a module in which bodies are easy to write: those of kernels with lines are of one line, broadcasts that
// are more than repetition of one element or leading axes are mt.broadcast, and reductions inside a row reduce their
// last axes. `formOf` is asked before anything of a kernel is rewritten.
struct NormalModule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::DenseMap<mlir::Operation *, LineForm> forms;
};
NormalModule normalised(mlir::ModuleOp module, llvm::function_ref<LineForm(mlir::plan::KernelOp)> formOf);

// Element-wise values of 16 lanes (or one scalar), each computed once. `source` gives the lanes of values that are not
// computed here (null: compute).
class VectorBody {
public:
  VectorBody(Kernel &kernel, bool scalar, std::function<mlir::Value(mlir::Value)> source)
      : kernel(kernel), scalar(scalar), source(std::move(source)) {}
  mlir::Value get(mlir::Value value);
  void set(mlir::Value value, mlir::Value computed) { known[value] = computed; }

private:
  Kernel &kernel;
  bool scalar;
  std::function<mlir::Value(mlir::Value)> source;
  llvm::DenseMap<mlir::Value, mlir::Value> known;
};

// The lanes of mt.random_uniform whose first is element `element` (i64) of the global tensor, or that element alone.
// `scalarOf` gives the i32 of an operand.
mlir::Value emitUniform(Kernel &kernel, mlir::mt::RandomUniformOp op, mlir::Value element,
                        llvm::function_ref<mlir::Value(mlir::Value)> scalarOf, bool scalar = false);
// The numbers of a stream, given by its hash, at sixteen elements, each `apart` behind the one before.
mlir::Value emitUniform(Kernel &kernel, mlir::Value hash, mlir::Value element, int64_t apart, mlir::Value step);
// The same number at one element.
mlir::Value emitUniform(Kernel &kernel, mlir::Value hash, mlir::Value element, mlir::Value step);
// The hash of a stream's name, an i32.
mlir::Value emitHash(Emitter &emit, llvm::StringRef stream);

// e^a for a up to 0, of lanes or of one; below -87 it stays what it is there, a normal number.
mlir::Value emitExp(Emitter &emit, mlir::Value a);

} // namespace mtc

#endif
