// SPDX-License-Identifier: Apache-2.0
//
// One kernel during code generation, and functions on its body that the CPU and GPU code generators share.
#ifndef COMPILER_CODEGEN_COMMON_KERNEL_H
#define COMPILER_CODEGEN_COMMON_KERNEL_H

#include "compiler/codegen/common/Emitter.h"
#include "compiler/codegen/common/LineForm.h"
#include "compiler/codegen/common/Shapes.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

namespace mtc {

// The grid of a kernel (runtime/abi/plan.fbs), the same for all targets.
struct Grid {
  int64_t rowsPerTile = 0, innerTiles = 1, elementsPerTile = 0;
};

struct Kernel {
  Emitter &emit;
  mlir::plan::KernelOp op; // with a canonical body (`normalised` below)
  mlir::mt::KernelKind kind;
  Grid grid;
  int64_t shardRows;
  bool fast;
  mlir::Value params, buffers, tileBegin, tileEnd; // arguments of the function
  LineForm form = {};                              // of the body
  mlir::Value loadedRows = {};                     // rows(), if they are known already

  mlir::Block &body() { return op.getBody().front(); }
  mlir::OperandRange yields() { return body().getTerminator()->getOperands(); }
  mlir::Value buffer(int64_t index) { return emit.loadPointer(buffers, index); }
  mlir::Value argumentBuffer(int64_t index) { return buffer(index); }
  mlir::Value resultBuffer(int64_t index) { return buffer(body().getNumArguments() + index); }
  // Fields of mt_kernel_params, i64.
  mlir::Value rows() { return loadedRows ? loadedRows : emit.loadInteger(params, 0); }
  mlir::Value firstRow() { return emit.loadInteger(params, 1); }
  mlir::Value globalRows() { return emit.loadInteger(params, 2); }
  mlir::Value count() { return emit.loadInteger(params, 3); }
  mlir::Value seed() { return emit.loadInteger(params, 4); }
  // Whether the rows continue a shard, an i1.
  mlir::Value continues() { return emit.less(emit.integer(0), emit.loadInteger(params, 7)); }
  // The value of mt.batch_size, an f32.
  mlir::Value batchSize();
};

// A copy of a module with canonical kernel bodies. The body of a kernel with lines computes one line. A broadcast that
// is more than the repetition of one element or of leading axes is an mt.broadcast. A reduction inside of a row reduces
// the last axes. `formOf` is called for a kernel before it is rewritten.
struct NormalModule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::DenseMap<mlir::Operation *, LineForm> forms;
};
NormalModule normalised(mlir::ModuleOp module, llvm::function_ref<LineForm(mlir::plan::KernelOp)> formOf);

// Element-wise values as vectors of 16 elements, or as one scalar; each value is computed once. `source` returns values
// that are not computed here, or null if the value is to be computed.
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

// Random numbers of mt.random_uniform for 16 elements from element `element` (i64) of the global tensor on, or for that
// element alone. `scalarOf` returns an operand as i32.
mlir::Value emitUniform(Kernel &kernel, mlir::mt::RandomUniformOp op, mlir::Value element,
                        llvm::function_ref<mlir::Value(mlir::Value)> scalarOf, bool scalar = false);
// Random numbers of a stream with this hash for 16 elements: `element` and the following elements at a distance of
// `stride`.
mlir::Value emitUniform(Kernel &kernel, mlir::Value hash, mlir::Value element, int64_t stride, mlir::Value step);
// The random number of one element.
mlir::Value emitUniform(Kernel &kernel, mlir::Value hash, mlir::Value element, mlir::Value step);
// The hash of a stream's name, an i32.
mlir::Value emitHash(Emitter &emit, llvm::StringRef stream);

// e^a for a <= 0, for vectors or scalars. Below -87 the result is e^-87, a normal number.
mlir::Value emitExp(Emitter &emit, mlir::Value a);

} // namespace mtc

#endif
