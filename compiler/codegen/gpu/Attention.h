// SPDX-License-Identifier: Apache-2.0
//
// What kernels of attention and of its gradients have in common on a GPU. A block has 64 lines of its own, queries or
// keys of one head, and meets the other lines some at a time. A warp has 16 of the block's lines. Scores are pieces of
// 16 x 8 in the registers of a warp, as tensor cores have them, also where FMAs compute them: what follows a product is
// the same code. docs/gpu-code.md, "Attention".
#ifndef COMPILER_CODEGEN_GPU_ATTENTION_H
#define COMPILER_CODEGEN_GPU_ATTENTION_H

#include "compiler/codegen/common/AttentionInputs.h"
#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// Lines of a block and of a warp. The grid and the order of sums depend on them.
constexpr int64_t attentionLines = 64, attentionWarpLines = 16, attentionThreads = attentionLines / 16 * warpThreads;

// How the elements of [16 x columns] are divided in a warp. With (g, t) = (lane / 4, lane % 4), a lane has lines g and
// g + 8, of these columns t * wide to t * wide + wide - 1 of each piece of 4 * wide.
struct WarpTile {
  int64_t pieces, wide;
  int64_t count() const { return 2 * pieces * wide; }
  int64_t half(int64_t i) const { return i / wide % 2; } // of the two lines
  int64_t column(int64_t i) const { return i / (2 * wide) * 4 * wide + i % wide; }
};

// Lines of a head in device memory.
struct HeadLines {
  mlir::Value base; // of the head's channels at the first position
  int64_t stride;   // elements from position to position
  int64_t size;     // channels of the head
  int64_t count;    // positions
};
// Lines in workgroup memory, one each `stride` elements: 16-bit ones, or floats if FMAs or TF32 read them.
struct LinePanel {
  mlir::Value memory;
  int64_t size, stride;
};

// The largest power of two up to `most` (one itself) that divides a size.
int64_t chunkOfSize(int64_t size, int64_t most);
// The nearest number of TF32, ties away from zero, as tensor cores take it: an i32.
mlir::Value tf32(Emitter &emit, mlir::Value number);

// The lines of its own of a block; in workgroup memory, too, where ldmatrix reads them.
struct OwnLines {
  HeadLines lines;
  mlir::Value first; // i64
  LinePanel panel;
  llvm::SmallVector<Emitter::Values> fragments; // what tensor cores read of them; if empty, it is loaded each time
};

class AttentionBlock {
public:
  AttentionBlock(BlockKernel &kernel, mlir::Operation *op);

protected:
  enum class Way { fma, singles, halves }; // how products are computed: by FMAs, in TF32, in 16 bits
  // Lines that a block meets at once, in one buffer or two. Bits depend on `lines`.
  struct Portion {
    int64_t lines, buffers;
  };

  BlockKernel &kernel;
  Emitter &emit;
  const mlir::mt::Attention form;
  const mlir::Type element; // of operands and results
  const Way way;
  const bool fast;  // exponentials are powers of 2, by the hardware's approximation
  const float unit; // of an exponent
  // Of the thread, i64: its position in the warp and in its four lanes; the first line of its warp.
  mlir::Value lane, group, pair, warpLine;

  // ---- sizes (AttentionMemory.cpp)
  Way wayOf(mlir::Operation *op) const;
  int64_t strideOf(Way way, int64_t size) const;
  int64_t lineBytes(Way way) const; // of one other line: its channels as key and as value
  Portion portion(Way way, bool isGradient) const;
  int64_t sharedBytes(Way way, bool isGradient) const;
  int64_t sharedBytes(bool isGradient) const; // of all ways of plans of this precision
  WarpTile tileOfSize(int64_t size) const;    // of sums over other lines
  WarpTile tileOfLines(int64_t lines) const { return {lines / 8, 2}; }

  // ---- one head
  using Head = AttentionHead;
  Head headOf(mlir::Value sample, mlir::Value group, mlir::Value head, mlir::Value keyHead);
  HeadLines linesOf(mlir::Value base, const Head &head, bool ofKeys, int64_t size);
  // Others [first, end) that the block's lines may meet by their block, as a multiple of `lines` and an end.
  std::pair<mlir::Value, mlir::Value> othersOf(mlir::Value own, bool ownIsQuery, int64_t lines);

  // ---- memory (AttentionMemory.cpp)
  // panel = lines [first, first + lines); zeros for those that there are not. With `halves` it may go on until
  // awaitCopies.
  void copyLines(const HeadLines &from, mlir::Value first, int64_t lines, const LinePanel &to);
  void endCopies(); // waits for them; then the lines are there for all threads
  // What products read behind the channels.
  void clearPads(const LinePanel &panel, int64_t lines);
  void storeSums(mlir::ValueRange sums, int64_t size, mlir::ValueRange scales, const HeadLines &to, mlir::Value first);

  // ---- products (AttentionProduct.cpp)
  void loadFragments(OwnLines &own);
  // own lines . lines of the panel: a WarpTile of `lines`.
  Emitter::Values scores(const OwnLines &own, const LinePanel &panel, int64_t lines);
  // sums + p . panel, where p is a WarpTile of `lines`.
  Emitter::Values addProduct(mlir::ValueRange p, int64_t lines, const LinePanel &panel, mlir::ValueRange sums);

  // ---- scores
  struct ScoreTile {
    const Head &head;
    mlir::Value own, other; // the first of the block's lines, and of the others
    bool ownIsQuery;
    int64_t lines; // others
  };
  // `values` where the query sees the key, else `instead`.
  Emitter::Values hide(const ScoreTile &block, mlir::ValueRange values, mlir::Value instead);
  // With dropout, what each probability is multiplied by; else nothing.
  Emitter::Values kept(const ScoreTile &block);
  bool hides() const { return form.causal || form.window || form.mask; }
  mlir::Value exp(mlir::Value a); // e^(a / unit), a up to 0

  // ---- the walk over other lines
  using Bring = llvm::function_ref<void(mlir::Value position, mlir::Value buffer)>;
  using Meet = llvm::function_ref<Emitter::Values(mlir::Value position, mlir::Value buffer, mlir::ValueRange carried)>;
  // Brings the lines of each portion into a buffer, and meets them in order.
  Emitter::Values walk(mlir::Value buffers, int64_t bufferBytes, Portion portion,
                       std::pair<mlir::Value, mlir::Value> others, mlir::ValueRange carried, Bring bring, Meet meet);

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
  mlir::Value bytesBehind(mlir::Value base, int64_t bytes) { return emit.address(base, emit.getI8Type(), bytes); }
  // What the four lanes of a line have, combined.
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
  mlir::Value probabilities; // of FMAs: where a tile of p lies
};

} // namespace mtc

#endif
