// SPDX-License-Identifier: Apache-2.0
//
// Products of panels by tensor cores: pieces of 16 x 8 sums, by 16 positions of k of 16-bit numbers (m16n8k16) or 8 of
// TF32 (m16n8k8), or 64 rows by four warps (wgmma). A panel has 64 bytes of k of every row, or 128 for wgmma. Several
// panels are in workgroup memory or in flight, copied without passing through registers.
//
// A side has the layout of memory in a panel: rows of successive k (deep), or of successive rows of the side. The
// 16-byte parts of a row are permuted by the row's number, so that the parts that a warp reads at once are in different
// banks: eight parts at the same position in eight rows for ldmatrix, or words of four rows for TF32 sides that are not
// deep (ldmatrix transposes only 16-bit numbers). wgmma has the same permutation with rows of 128 bytes; a side that is
// not deep is divided into panels of 64 rows, one after the other.
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mtc;

// Shape of the instruction (PTX ISA, mma), and bytes of k per row.
constexpr int64_t pieceRows = 16, pieceColumns = 8, pieceBytes = 32;
constexpr int64_t partBytes = 16;

int64_t ProductBlock::stages() const {
  int64_t blocks = residentThreads / tile.threads();
  return std::min(maxStages, (isByWarpgroup() ? warpgroupSharedBytes / blocks : maxSharedBytes) / stageBytes());
}

void ProductBlock::divideAmongWarps() {
  lane = emit.rem(kernel.thread, emit.integer(warpThreads));
  Value warp = emit.div(kernel.thread, emit.integer(warpThreads));
  Value across = emit.integer(tile.columns / warpColumns());
  if (isByWarpgroup())
    row = emit.add(emit.mul(emit.div(warp, emit.integer(4)), warpgroupRows()),
                   emit.mul(emit.rem(warp, emit.integer(4)), pieceRows));
  else
    row = emit.mul(emit.div(warp, across), warpRows());
  column = emit.mul(emit.rem(warp, across), warpColumns());
  lineInWarp = emit.div(lane, emit.integer(4));
  pairInWarp = emit.rem(lane, emit.integer(4));
}

// Whether the fragments of a side are loaded word by word.
static bool isByWord(bool deep, int64_t elementBytes) { return !deep && elementBytes == 4; }

// Offset of byte `byte` of row `row` in the panel of a side.
Value ProductBlock::offsetOf(bool deep, bool left, Value row, Value byte) {
  int64_t pitch = rowBytes(deep, left);
  Value panel = emit.integer(0); // offset of the panel of 64 rows
  if (isByWarpgroup() && !deep) {
    pitch = warpgroupRowBytes;
    panel = emit.mul(emit.div(byte, emit.integer(pitch)), tile.depth * pitch);
    byte = emit.rem(byte, emit.integer(pitch));
  }
  int64_t parts = pitch / partBytes, most = std::min<int64_t>(parts, 8);
  Value swap = isByWord(deep, elementBytes()) ? emit.mul(emit.rem(row, emit.integer(most / 2)), 2)
                                              : emit.rem(emit.div(row, emit.integer(8 / most)), emit.integer(most));
  Value part = arith::XOrIOp::create(emit, emit.div(byte, emit.integer(partBytes)), swap);
  Value inRow = emit.add(emit.mul(part, partBytes), emit.rem(byte, emit.integer(partBytes)));
  return emit.add(panel, emit.add(emit.mul(row, pitch), inRow));
}

// Offsets of the thread's chunks.
Emitter::Values ProductBlock::offsetsOf(const ProductSide &side, bool left) {
  Emitter::Values offsets;
  for (int64_t i = 0, end = chunks(side, left); i < end; ++i) {
    auto [line, k] = chunkPosition(side, left, i);
    offsets.push_back(offsetOf(side.deep, left, side.deep ? line : k, emit.mul(side.deep ? k : line, elementBytes())));
  }
  return offsets;
}

// Starts to copy the thread's chunks of a panel; copies zeros if `wanted` is false.
void ProductBlock::copy(const ProductSide &side, bool left, const Kept &kept, ValueRange offsets, ValueRange position,
                        Value stage, Value wanted) {
  for (auto [i, chunk] : llvm::enumerate(kept)) {
    auto [address, there] = side.locate(chunk, position);
    Value to = emit.address(stage, emit.getI8Type(), offsets[i]), from = address, taken = both(emit, there, wanted);
    auto start = [&] { copyAsync(emit, to, from, taken, side.chunk * elementBytes()); };
    if (Value mine = hasChunk(side, left, static_cast<int64_t>(i)))
      emit.when(mine, start);
    else
      start();
  }
}

// Stores chunks that are too small to be copied asynchronously, from registers.
void ProductBlock::put(const ProductSide &side, bool left, ValueRange loaded, ValueRange offsets, Value stage) {
  for (auto [i, chunk] : llvm::enumerate(loaded)) {
    Value to = emit.address(stage, emit.getI8Type(), offsets[i]), taken = chunk;
    auto store = [&] { emit.store(element, taken, to); };
    if (Value mine = hasChunk(side, left, static_cast<int64_t>(i)))
      emit.when(mine, store);
    else
      store();
  }
}

// Offsets of the lane's fragments of a side in a panel, for the first step of k: for ldmatrix of a deep side, one per
// step for all pieces; else one per 16 rows or, word by word, one per 8 rows.
Emitter::Values ProductBlock::fragmentOffsets(bool deep, bool left) {
  Emitter::Values offsets;
  Value first = left ? row : column;
  int64_t warpLines = left ? warpRows() : warpColumns(), each = elementBytes();
  if (isByWord(deep, each)) {
    for (int64_t line = 0; line < warpLines; line += 8)
      offsets.push_back(offsetOf(deep, left, pairInWarp, emit.mul(emit.add(emit.add(first, line), lineInWarp), each)));
    return offsets;
  }
  // Lanes 8 to 15 address the second matrix, lanes 16 to 23 the third; either is 8 rows, or 8 (or 4) k, after the
  // first.
  Value inMatrix = emit.rem(lane, emit.integer(8)), odd = emit.rem(emit.div(lane, emit.integer(8)), emit.integer(2)),
        high = emit.div(lane, emit.integer(16));
  Value further = emit.mul(left == deep ? odd : high, 8), part = left == deep ? high : odd;
  Value inRow = emit.add(inMatrix, further);
  if (deep) {
    for (int64_t step = 0; step < panelRowBytes / pieceBytes; ++step)
      offsets.push_back(
          offsetOf(deep, left, emit.add(first, inRow), emit.add(emit.mul(part, partBytes), step * pieceBytes)));
    return offsets;
  }
  for (int64_t line = 0; line < warpLines; line += 16)
    offsets.push_back(
        offsetOf(deep, left, inRow, emit.add(emit.mul(emit.add(first, line), each), emit.mul(part, partBytes))));
  return offsets;
}

// A word rounded as an operand of tensor cores.
static Value rounded(Emitter &emit, Value word) {
  Value number = arith::BitcastOp::create(emit, emit.getF32Type(), word);
  return NVVM::ConvertFloatToTF32Op::create(emit, emit.getI32Type(), number, NVVM::FPRoundingMode::RNA,
                                            NVVM::SaturationMode::NONE, /*relu=*/false);
}

// Words of rows [16 number, 16 number + 16) of the warp at a step of k: the left operand of a piece, or the right
// operands of two pieces.
Emitter::Values ProductBlock::operand(bool deep, bool left, Value panel, ValueRange offsets, int64_t number,
                                      int64_t step) {
  Type i8 = emit.getI8Type();
  Emitter::Values words;
  if (isByWord(deep, elementBytes())) {
    int64_t pitch = rowBytes(deep, left);
    auto word = [&](int64_t line, int64_t k) {
      Value at = emit.address(panel, i8, offsets[2 * number + line]);
      return emit.load(emit.getI32Type(), emit.address(at, i8, (step * pieceColumns + k) * pitch));
    };
    words = left ? Emitter::Values{word(0, 0), word(1, 0), word(0, 4), word(1, 4)}
                 : Emitter::Values{word(0, 0), word(0, 4), word(1, 0), word(1, 4)};
  } else {
    Value at = emit.address(panel, i8, offsets[deep ? step : number]);
    int64_t further = deep ? number * 16 * rowBytes(deep, left) : step * 16 * rowBytes(deep, left);
    words = loadMatrices(emit, emit.address(at, i8, further), 4, /*transposed=*/!deep);
  }
  if (elementBytes() == 4)
    for (Value &word : words)
      word = rounded(emit, word);
  return words;
}

// sums + the product of the panels of a stage.
Emitter::Values ProductBlock::multiplyPieces(bool leftDeep, bool rightDeep, Value stage, ValueRange leftOffsets,
                                             ValueRange rightOffsets, ValueRange sums) {
  int64_t down = warpRows() / pieceRows, across = warpColumns() / pieceColumns;
  Value right = emit.address(stage, emit.getI8Type(), panelBytes(true));
  Emitter::Values next(sums);
  for (int64_t step = 0; step < panelRowBytes / pieceBytes; ++step) {
    Emitter::Values b;
    for (int64_t j = 0; j < across / 2; ++j)
      b.append(operand(rightDeep, false, right, rightOffsets, j, step));
    for (int64_t i = 0; i < down; ++i) {
      Emitter::Values a = operand(leftDeep, true, stage, leftOffsets, i, step);
      for (int64_t j = 0; j < across; ++j) {
        MutableArrayRef<Value> piece = MutableArrayRef<Value>(next).slice((i * across + j) * 4, 4);
        ValueRange words = ValueRange(b).slice(2 * j, 2);
        llvm::copy(elementBytes() == 4 ? multiplySingles(emit, a, words, ValueRange(piece))
                                       : multiplyHalves(emit, element, a, words, ValueRange(piece)),
                   piece.begin());
      }
    }
  }
  return next;
}

Emitter::Values ProductBlock::addPieces(const ProductSide &left, const ProductSide &right, const ProductPanels &panels,
                                        ValueRange sums) {
  Type i8 = emit.getI8Type();
  Kept keptLeft = prepare(left, true), keptRight = prepare(right, false);
  Emitter::Values leftOffsets = offsetsOf(left, true), rightOffsets = offsetsOf(right, false);
  Emitter::Values leftFragments, rightFragments;
  if (!isByWarpgroup()) {
    leftFragments = fragmentOffsets(left.deep, true);
    rightFragments = fragmentOffsets(right.deep, false);
  }
  int64_t ahead = stages() - 1, all = stages() * stageBytes();
  auto isCopied = [&](const ProductSide &side) { return side.chunk * elementBytes() >= 4; };
  // The epilogue, which runs once, must not reduce the number of resident blocks. (Chunks that pass through registers
  // need more registers.)
  if (isCopied(left) && isCopied(right))
    kernel.residentBlocks = residentThreads / tile.threads();
  auto rightOf = [&](Value stage) { return emit.address(stage, i8, panelBytes(true)); };
  // Starts to load a stage: copies, which form a group, and loads that `store` writes to it.
  auto start = [&](ValueRange position, Value stage, Value wanted) {
    std::pair<Emitter::Values, Emitter::Values> loaded;
    if (isCopied(left))
      copy(left, true, keptLeft, leftOffsets, position, stage, wanted);
    else
      loaded.first = load(left, keptLeft, position);
    if (isCopied(right))
      copy(right, false, keptRight, rightOffsets, position, rightOf(stage), wanted);
    else
      loaded.second = load(right, keptRight, position);
    commitCopies(emit);
    return loaded;
  };
  auto store = [&](const std::pair<Emitter::Values, Emitter::Values> &loaded, Value stage) {
    put(left, true, loaded.first, leftOffsets, stage);
    put(right, false, loaded.second, rightOffsets, rightOf(stage));
  };
  Emitter::Values position(panels.first);
  for (int64_t stage = 0; stage < ahead; ++stage) {
    Value to = emit.address(memory, i8, stage * stageBytes());
    store(start(position, to, emit.less(emit.integer(stage), panels.count)), to);
    position = panels.following(position);
  }
  Emitter::Values carried(sums);
  carried.append({emit.integer(0), emit.integer(ahead * stageBytes())});
  carried.append(position);
  auto following = [&](Value stage) -> Value {
    Value next = emit.add(stage, stageBytes());
    return arith::SelectOp::create(emit, emit.equal(next, emit.integer(all)), emit.integer(0), next);
  };
  Emitter::Values results = emit.loop(emit.integer(0), panels.count, 1, carried, [&](Value number, ValueRange now) {
    Value current = now[count()], free = now[count() + 1];
    ValueRange position = now.drop_front(count() + 2);
    // The panel is complete for all threads, and all threads have finished with the previous panel, whose stage is free
    // now.
    awaitCopies(emit, ahead - 1);
    if (isByWarpgroup())
      showToWarpgroups(emit);
    kernel.barrier();
    Value to = emit.address(memory, i8, free), stage = emit.address(memory, i8, current);
    Emitter::Values next(now.take_front(count()));
    if (isByWarpgroup()) // it continues while the copies are started
      next = startByWarpgroup(left.deep, right.deep, stage, next);
    auto loaded = start(position, to, emit.less(emit.add(number, ahead), panels.count));
    next = isByWarpgroup() ? awaitWarpgroup(emit, next)
                           : multiplyPieces(left.deep, right.deep, stage, leftFragments, rightFragments, next);
    store(loaded, to);
    next.append({following(current), following(free)});
    next.append(panels.following(position));
    return next;
  });
  awaitCopies(emit, 0);
  kernel.barrier();
  results.resize(count());
  return results;
}

// Starts sums + the product of the panels of a stage, by warpgroups that each have some of the tile's rows.
Emitter::Values ProductBlock::startByWarpgroup(bool leftDeep, bool rightDeep, Value stage, ValueRange sums) {
  Value group = emit.div(kernel.thread, emit.integer(4 * warpThreads));
  int64_t lineBytes = tile.depth * elementBytes();
  Value left = emit.address(stage, emit.getI8Type(), emit.mul(group, warpgroupRows() * lineBytes));
  Value right = emit.address(stage, emit.getI8Type(), panelBytes(true));
  WarpgroupProduct product{element, warpgroupRows(), tile.columns, tile.depth, !leftDeep, !rightDeep};
  return mtc::startByWarpgroup(emit, product, left, right, sums);
}

// First row of a piece, relative to the warp's first row, in the order of the sums.
int64_t ProductBlock::pieceRow(int64_t piece) const {
  return piece / (warpColumns() / pieceColumns) * (isByWarpgroup() ? warpgroupLines : pieceRows);
}

// Stores all rows of a warp, or none.
void ProductBlock::stagePieces(ValueRange sums, int64_t firstRow, int64_t rows) {
  Type f32 = emit.getF32Type();
  int64_t across = warpColumns() / pieceColumns;
  Value line = emit.sub(row, emit.integer(firstRow));
  Value here = both(emit, emit.less(emit.integer(-1), line), emit.less(line, emit.integer(rows)));
  emit.when(here, [&] {
    Value start = emit.add(column, emit.mul(pairInWarp, 2));
    Value to = emit.address(memory, f32, emit.add(emit.mul(emit.add(line, lineInWarp), stagedStride()), start));
    for (int64_t i = 0; i < count(); i += 2) {
      int64_t piece = i / 4, down = pieceRow(piece) + i % 4 / 2 * 8, right = piece % across * pieceColumns;
      storeChunk(emit, sums.slice(i, 2), emit.address(to, f32, down * stagedStride() + right));
    }
  });
}
