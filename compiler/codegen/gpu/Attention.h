// SPDX-License-Identifier: Apache-2.0
//
// Code that the kernels of attention and of its gradients share on a GPU. A block owns 64 rows, queries or keys of one
// head, and processes the other rows step by step. A warp has 16 of the block's rows. Scores are pieces of 16 x 8 in
// the registers of a warp, in the layout of tensor cores, even if FMAs compute them, so that the code after a product
// is the same. See docs/gpu-code.md, "Attention".
#ifndef COMPILER_CODEGEN_GPU_ATTENTION_H
#define COMPILER_CODEGEN_GPU_ATTENTION_H

#include "compiler/codegen/common/AttentionInputs.h"
#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// Rows of a block and of a warp. The grid and the order of sums depend on them.
constexpr int64_t attentionLines = 64, attentionWarpLines = 16, attentionThreads = attentionLines / 16 * warpThreads;

// Distribution of a matrix [16 x columns] over a warp. With (g, t) = (lane / 4, lane % 4), a lane has rows g and g + 8,
// and of these the columns t * wide to t * wide + wide - 1 of each piece of 4 * wide columns.
struct WarpTile {
  int64_t pieces, wide;
  int64_t count() const { return 2 * pieces * wide; }
  int64_t half(int64_t i) const { return i / wide % 2; } // which of the two rows
  int64_t column(int64_t i) const { return i / (2 * wide) * 4 * wide + i % wide; }
};

// Rows of a head in device memory.
struct HeadLines {
  mlir::Value base; // address of the head's channels at the first position
  int64_t stride;   // stride of positions in elements
  int64_t size;     // channels of the head
  int64_t count;    // number of positions
};
// Rows in workgroup memory with the given stride: 16-bit elements, or floats if FMAs or TF32 products read them.
struct LinePanel {
  mlir::Value memory;
  int64_t size, stride;
};

// The largest power of two up to `most`, itself a power of two, that divides `size`.
int64_t chunkOfSize(int64_t size, int64_t most);
// Rounds to the nearest TF32 number, ties away from zero, as the operand of tensor cores: an i32.
mlir::Value tf32(Emitter &emit, mlir::Value number);

// The rows that a block owns; also in workgroup memory if ldmatrix reads them.
struct OwnLines {
  HeadLines lines;
  mlir::Value first; // first row, i64
  LinePanel panel;
  // operands of tensor cores, in registers; empty: they are loaded each time
  llvm::SmallVector<Emitter::Values> fragments;
};

class AttentionBlock {
public:
  AttentionBlock(BlockKernel &kernel, mlir::Operation *op);

protected:
  enum class Way { fma, singles, halves }; // how products are computed: by FMAs, in TF32, in 16 bits
  // Other rows that a block processes in one step, in one or two buffers. The bits depend on `lines`.
  struct Step {
    int64_t lines, buffers;
  };

  BlockKernel &kernel;
  Emitter &emit;
  const mlir::mt::Attention form;
  const mlir::Type element; // of operands and results
  const Way way;
  const bool fast;  // exponentials are powers of 2, by the approximation of the hardware
  const float unit; // `exp` computes e^(a / unit)
  // Numbers of the thread, i64: its lane; lane / 4 and lane % 4; the first row of its warp.
  mlir::Value lane, group, pair, warpLine;

  // ---- sizes (AttentionMemory.cpp)
  Way wayOf(mlir::Operation *op) const;
  int64_t strideOf(Way way, int64_t size) const;
  int64_t lineBytes(Way way) const; // bytes of one other row: its channels as key and as value
  Step stepOf(Way way, bool isGradient) const;
  int64_t sharedBytes(Way way, bool isGradient) const;
  int64_t sharedBytes(bool isGradient) const; // largest number over all ways that plans of this precision use
  WarpTile tileOfSize(int64_t size) const;    // of sums over other rows
  WarpTile tileOfLines(int64_t lines) const { return {lines / 8, 2}; }

  // ---- one head
  using Head = AttentionHead;
  Head headOf(mlir::Value sample, mlir::Value group, mlir::Value head, mlir::Value keyHead);
  HeadLines linesOf(mlir::Value base, const Head &head, bool ofKeys, int64_t size);
  // Range [first, end) of other rows that the block processes; `first` is a multiple of `lines`.
  std::pair<mlir::Value, mlir::Value> othersOf(mlir::Value own, bool ownIsQuery, int64_t lines);

  // ---- memory (AttentionMemory.cpp)
  //
  // panel = rows [first, first + lines); rows that do not exist are zeros. For `halves`, the copy may continue until
  // awaitCopies.
  void copyLines(const HeadLines &from, mlir::Value first, int64_t lines, const LinePanel &to);
  void endCopies(); // waits for the copies; all threads can then read the rows
  // Clears the padding after the channels, which products read.
  void clearPads(const LinePanel &panel, int64_t lines);
  void storeSums(mlir::ValueRange sums, int64_t size, mlir::ValueRange scales, const HeadLines &to, mlir::Value first);

  // ---- products (AttentionProduct.cpp)
  void loadFragments(OwnLines &own);
  // The products of the own rows and the rows of the panel, a WarpTile of `lines` columns.
  Emitter::Values scores(const OwnLines &own, const LinePanel &panel, int64_t lines);
  // sums + p . panel, where p is a WarpTile of `lines` columns.
  Emitter::Values addProduct(mlir::ValueRange p, int64_t lines, const LinePanel &panel, mlir::ValueRange sums);

  // ---- scores
  struct ScoreTile {
    const Head &head;
    mlir::Value own, other; // first row of the block, first of the other rows
    bool ownIsQuery;
    int64_t lines; // number of other rows
  };
  // `values` where the query attends to the key, else `instead`.
  Emitter::Values hide(const ScoreTile &block, mlir::ValueRange values, mlir::Value instead);
  // With dropout, the factor of each probability; else empty.
  Emitter::Values kept(const ScoreTile &block);
  bool hides() const { return form.causal || form.window || form.mask; }
  mlir::Value exp(mlir::Value a); // e^(a / unit), for a <= 0

  // ---- loop over other rows
  using Load = llvm::function_ref<void(mlir::Value position, mlir::Value buffer)>;
  using Visit = llvm::function_ref<Emitter::Values(mlir::Value position, mlir::Value buffer, mlir::ValueRange carried)>;
  // Loads the rows of each step into a buffer, and calls `visit` for the steps in order.
  Emitter::Values walk(mlir::Value buffers, int64_t bufferBytes, Step step, std::pair<mlir::Value, mlir::Value> others,
                       mlir::ValueRange carried, Load load, Visit visit);

  mlir::Value number(float value) {
    return mlir::arith::ConstantOp::create(emit, emit.getF32FloatAttr(value)).getResult();
  }
  mlir::Value plus(mlir::Value a, mlir::Value b) { return mlir::arith::AddFOp::create(emit, a, b); }
  mlir::Value minus(mlir::Value a, mlir::Value b) { return mlir::arith::SubFOp::create(emit, a, b); }
  mlir::Value times(mlir::Value a, mlir::Value b) { return mlir::arith::MulFOp::create(emit, a, b); }
  mlir::Value larger(mlir::Value a, mlir::Value b) { return mlir::arith::MaxNumFOp::create(emit, a, b); }
  mlir::Value isEqual(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpFOp::create(emit, mlir::arith::CmpFPredicate::OEQ, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return mlir::arith::SelectOp::create(emit, condition, a, b);
  }
  mlir::Value at(mlir::Value base, mlir::Value index) { return emit.address(base, element, index); }
  mlir::Value bytesAfter(mlir::Value base, int64_t bytes) { return emit.address(base, emit.getI8Type(), bytes); }
  // Combines the values of the four lanes that share a row.
  mlir::Value overFour(mlir::Value a, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  Emitter::Values zeros(int64_t count) { return Emitter::Values(count, emit.zeros(emit.getF32Type())); }

  static constexpr float log2e = 1.44269504088896341f;

private:
  const AttentionInputs inputs;

  mlir::Type panelType() const { return way == Way::halves ? emit.getI16Type() : mlir::Type(emit.getF32Type()); }
  Emitter::Values fragment(const OwnLines &own, int64_t number);
  Emitter::Values scoresOfHalves(const OwnLines &own, const LinePanel &panel, int64_t lines);
  Emitter::Values scoresOfSingles(const OwnLines &own, const LinePanel &panel, int64_t lines);
  Emitter::Values scoresByFma(const OwnLines &own, const LinePanel &panel, int64_t lines);
  Emitter::Values addHalves(mlir::ValueRange p, int64_t lines, const LinePanel &panel, mlir::ValueRange sums);
  Emitter::Values addSingles(mlir::ValueRange p, int64_t lines, const LinePanel &panel, mlir::ValueRange sums);
  Emitter::Values addByFma(mlir::ValueRange p, int64_t lines, const LinePanel &panel, mlir::ValueRange sums);
  mlir::Value ownLine(const OwnLines &own, int64_t half);
  void storeElements(mlir::ValueRange values, int64_t size, mlir::Value to, mlir::Value column, int64_t piece);

  mlir::Value mayHide(const ScoreTile &block);
  mlir::Value sees(const ScoreTile &block, int64_t half, int64_t column);
  std::pair<mlir::Value, mlir::Value> queryAndKey(const ScoreTile &block, int64_t half, int64_t column);

protected:
  mlir::Value memory;        // workgroup memory of the block
  mlir::Value probabilities; // for FMAs: memory for a tile of p
};

} // namespace mtc

#endif
