// SPDX-License-Identifier: Apache-2.0
//
// Code that the kernels of attention and of its gradients share. Scores are stored transposed, S^T = K (scale Q)^T:
// each key has a row of vectors, whose elements are queries. So the largest score, the sum and the log sum of 16
// queries are vectors, which need no horizontal operations. The keys are the left side of the product and need no
// packing.
//
// A block of queries is divided into panels of as many queries as the tiles of the CPU are wide. The bits do not depend
// on this width.
#ifndef COMPILER_CODEGEN_CPU_ATTENTION_H
#define COMPILER_CODEGEN_CPU_ATTENTION_H

#include "compiler/codegen/common/AttentionInputs.h"
#include "compiler/codegen/cpu/Tile.h"

namespace mtc {

// Queries of a tile of the grid; keys of a block; granularity, in queries, at which hidden keys are skipped.
constexpr int64_t attentionQueries = 64, attentionKeys = 64, attentionSkipped = 32;

class AttentionEmitter {
public:
  AttentionEmitter(Kernel &kernel, mlir::Operation *op);

  const mlir::mt::Attention form;
  const Panel panel;                  // of queries
  const int64_t keyWidth, valueWidth; // channels of a head, rounded up to full vectors
  const mlir::Type element;           // type of operands and result; computations are in f32

  int64_t blocks() const { return ceilDiv(form.queries, attentionQueries); }
  int64_t panelWidth() const { return panel.width(); }

  // One head, at one index of the axes before the positions. `index` is the linear index of these axes, samples
  // included.
  using Head = AttentionHead;
  Head headOf(mlir::Value sample, mlir::Value group, mlir::Value head, mlir::Value keyHead);
  // Address of the row of a position for this head, in an argument [?, ..., positions, heads * size].
  mlir::Value lineOf(mlir::Value base, const Head &head, bool ofKeys, int64_t size, mlir::Value position);
  int64_t strideOf(bool ofKeys, int64_t size) const { return (ofKeys ? form.keyHeads : form.heads) * size; }

  // Stores 16 channels of a row of the result, rounded to its type.
  void storeRounded(mlir::Value number, mlir::Value address, mlir::Value mask);

  // Copies `count` rows to `to`, padded to full vectors, times `scale`. copyQueries fills up with zeros to
  // attentionQueries rows.
  void copyLines(mlir::Value from, int64_t stride, int64_t size, mlir::Value count, float scale, mlir::Value to);
  void copyQueries(mlir::Value from, int64_t stride, int64_t size, mlir::Value count, float scale, mlir::Value to);
  // Transposes the rows of a block (`width` floats each) to panels of queries, whose rows are channels.
  void transposeLines(mlir::Value lines, int64_t size, int64_t width, mlir::Value to);
  // Packs rows [0, rows) of a matrix of floats as panels of columns, each with `height` rows.
  void packLines(mlir::Value from, int64_t stride, int64_t size, mlir::Value rows, int64_t height, mlir::Value to);
  // Calls body(column, panel) for the panels of a head's channels.
  void forColumns(int64_t size, llvm::function_ref<void(mlir::Value column, Panel panel)> body);
  void zero(mlir::Value to, mlir::Value floats);
  void zero(mlir::Value to, int64_t floats) { zero(to, emit.integer(floats)); }

  // Iterates over the blocks of keys that some query of the block at `query`, of `count` queries, attends to. Calls
  // load(key, keys) once for each block of keys, then visit(at, key, seen) for each `group` queries: `at` is the index
  // of the first query in the block, and `seen` the number of the first keys of the block that the queries may attend
  // to.
  void walkKeys(mlir::Value query, mlir::Value count, int64_t group,
                llvm::function_ref<void(mlir::Value key, mlir::Value keys)> load,
                llvm::function_ref<void(mlir::Value at, mlir::Value key, mlir::Value seen)> visit);
  // to[rows x panel] = rows of keys times transposed queries. The rows have `width` floats, the first `depth` of which
  // are channels.
  void emitScores(mlir::Value lines, int64_t width, int64_t depth, mlir::Value transposed, mlir::Value rows,
                  mlir::Value to);
  // Calls `body` for the keys [first, end) of a block that every query of a panel sees, and for the keys that some
  // query may not see; two calls or one.
  void forSeen(mlir::Value key, mlir::Value keys, mlir::Value query,
               llvm::function_ref<void(mlir::Value first, mlir::Value end, bool hides)> body);
  // Mask of the queries from `query` on that attend to a key.
  mlir::Value seenLanes(const Head &head, mlir::Value key, mlir::Value query);

  // With dropout, the factors of the probabilities of a key for the queries from `query` on; else null.
  mlir::Value keptLanes(const Head &head, mlir::Value key, mlir::Value query);

  mlir::Value channel(mlir::Value line, mlir::Value index) { return emit.address(line, element, index); }
  mlir::Value lane(mlir::Value address, mlir::Value index) { return emit.address(address, emit.realType(), index); }
  mlir::Value lane(mlir::Value address, int64_t index) { return emit.address(address, emit.realType(), index); }
  mlir::Value load(mlir::Value address) { return emit.loadLanes(emit.realType(), address); }
  mlir::Value splat(float number) { return emit.splatConstant(emit.realAttr(number)); }
  mlir::Value plus(mlir::Value a, mlir::Value b) { return mlir::arith::AddFOp::create(emit, a, b); }
  mlir::Value minus(mlir::Value a, mlir::Value b) { return mlir::arith::SubFOp::create(emit, a, b); }
  mlir::Value times(mlir::Value a, mlir::Value b) { return mlir::arith::MulFOp::create(emit, a, b); }
  mlir::Value exp(mlir::Value a) { return emitExp(emit, a); }
  mlir::Value isEqual(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpFOp::create(emit, mlir::arith::CmpFPredicate::OEQ, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return mlir::arith::SelectOp::create(emit, condition, a, b);
  }

protected:
  Kernel &kernel;
  Emitter &emit;
  const AttentionInputs inputs;

private:
  std::pair<mlir::Value, mlir::Value> keysOf(mlir::Value query, mlir::Value count);
  mlir::Value keysOfPanel(mlir::Value key, mlir::Value end, mlir::Value query);
};

} // namespace mtc

#endif
