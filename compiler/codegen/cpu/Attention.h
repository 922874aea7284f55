// SPDX-License-Identifier: Apache-2.0
//
// What kernels of attention and of its gradients have in common. Scores lie transposed: S^T = K (scale Q)^T, a line of
// lanes for each key, where a lane is a query. So the largest score, the sum and the log sum of 16 queries are vectors,
// and no lanes are ever folded; and the keys need no packing, for they are the left side of the product.
//
// A block of queries is cut in panels of as many queries as the CPU's tiles are wide. The bits do not depend on it.
#ifndef COMPILER_CODEGEN_CPU_ATTENTION_H
#define COMPILER_CODEGEN_CPU_ATTENTION_H

#include "compiler/codegen/common/AttentionInputs.h"
#include "compiler/codegen/cpu/Tile.h"

namespace mtc {

// Queries of a tile of the grid, and keys that are taken at once; hidden keys are skipped for so many queries together.
constexpr int64_t attentionQueries = 64, attentionKeys = 64, attentionSkipped = 32;

class AttentionEmitter {
public:
  AttentionEmitter(Kernel &kernel, mlir::Operation *op);

  const mlir::mt::Attention form;
  const Panel panel;                  // of queries
  const int64_t keyWidth, valueWidth; // channels of a head in whole vectors
  const mlir::Type element;           // of operands and result; what is computed is f32

  int64_t blocks() const { return ceilDiv(form.queries, attentionQueries); }
  int64_t panelWidth() const { return panel.width(); }

  // One head of one index of the axes before the positions. `index` counts those axes, samples included.
  using Head = AttentionHead;
  Head headOf(mlir::Value sample, mlir::Value group, mlir::Value head, mlir::Value keyHead);
  // Where a position's line of this head begins, in an argument [?, ..., positions, heads * size].
  mlir::Value lineOf(mlir::Value base, const Head &head, bool ofKeys, int64_t size, mlir::Value position);
  int64_t strideOf(bool ofKeys, int64_t size) const { return (ofKeys ? form.keyHeads : form.heads) * size; }

  // Sixteen channels of a line of the result, rounded to its type.
  void storeRounded(mlir::Value number, mlir::Value address, mlir::Value mask);

  // to = `count` lines of whole vectors, times `scale`. Of queries, zeros up to attentionQueries lines follow.
  void copyLines(mlir::Value from, int64_t stride, int64_t size, mlir::Value count, float scale, mlir::Value to);
  void copyQueries(mlir::Value from, int64_t stride, int64_t size, mlir::Value count, float scale, mlir::Value to);
  // Lines of a block (`width` floats each) as panels of queries: lines of the result are channels.
  void transposeLines(mlir::Value lines, int64_t size, int64_t width, mlir::Value to);
  // Lines [0, rows) of a matrix of floats as panels of columns, each of `height` lines.
  void packLines(mlir::Value from, int64_t stride, int64_t size, mlir::Value rows, int64_t height, mlir::Value to);
  // body(column, panel) for the panels of a head's channels.
  void forColumns(int64_t size, llvm::function_ref<void(mlir::Value column, Panel panel)> body);
  void zero(mlir::Value to, mlir::Value floats);
  void zero(mlir::Value to, int64_t floats) { zero(to, emit.integer(floats)); }

  // The blocks of keys that some query of the block at `query`, of `count` queries, may see: load(key, keys) once for
  // each, then meet(at, key, seen) for each `group` queries, the first at `at` of the block, that may see `seen` of its
  // keys.
  void walkKeys(mlir::Value query, mlir::Value count, int64_t group,
                llvm::function_ref<void(mlir::Value key, mlir::Value keys)> load,
                llvm::function_ref<void(mlir::Value at, mlir::Value key, mlir::Value seen)> meet);
  // to[rows x panel] = lines (`width` floats each, `depth` of them channels) times transposed lines of queries.
  void emitScores(mlir::Value lines, int64_t width, int64_t depth, mlir::Value transposed, mlir::Value rows,
                  mlir::Value to);
  // Calls `body` for keys [first, end) of a block that every query of a panel sees, and for those that a query may not
  // see; twice or once.
  void forSeen(mlir::Value key, mlir::Value keys, mlir::Value query,
               llvm::function_ref<void(mlir::Value first, mlir::Value end, bool hides)> body);
  // Lanes of the queries from `query` on that see a key.
  mlir::Value seenLanes(const Head &head, mlir::Value key, mlir::Value query);

  // With dropout, what the probabilities of a key and of the queries from `query` on are multiplied by; else null.
  mlir::Value keptLanes(const Head &head, mlir::Value key, mlir::Value query);

  mlir::Value channel(mlir::Value line, mlir::Value index) { return emit.address(line, element, index); }
  mlir::Value lane(mlir::Value address, mlir::Value index) { return emit.address(address, emit.getF32Type(), index); }
  mlir::Value lane(mlir::Value address, int64_t index) { return emit.address(address, emit.getF32Type(), index); }
  mlir::Value load(mlir::Value address) { return emit.loadLanes(emit.getF32Type(), address); }
  mlir::Value splat(float number) { return emit.splatConstant(emit.getF32FloatAttr(number)); }
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
