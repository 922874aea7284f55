// SPDX-License-Identifier: Apache-2.0
//
// Products of attention in a warp, whose 16 rows are the left side: own rows . other rows (scores), and probabilities .
// other rows. There are three ways: mma of 16-bit numbers, mma of TF32, and FMAs.
#include "compiler/codegen/gpu/Attention.h"
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "dialects/mt/VectorExpr.h"

using namespace mlir;
using namespace mtc;

// ---- products

Value AttentionBlock::ownLine(const OwnLines &own, int64_t half) {
  Value position = emit.add(emit.add(own.first, warpLine), emit.add(group, 8 * half));
  if (own.lines.count % attentionLines)
    position = emit.min(position, emit.integer(own.lines.count - 1));
  return at(own.lines.base, emit.mul(position, own.lines.stride));
}

Emitter::Values AttentionBlock::scores(const OwnLines &own, const LinePanel &panel, int64_t lines) {
  return way == Way::halves    ? scoresOfHalves(own, panel, lines)
         : way == Way::singles ? scoresOfSingles(own, panel, lines)
                               : scoresByFma(own, panel, lines);
}
Emitter::Values AttentionBlock::addProduct(ValueRange p, int64_t lines, const LinePanel &panel, ValueRange sums) {
  return way == Way::halves    ? addHalves(p, lines, panel, sums)
         : way == Way::singles ? addSingles(p, lines, panel, sums)
                               : addByFma(p, lines, panel, sums);
}

// The fragment with this number along the channels of the warp's rows, as the left operand of an mma.
Emitter::Values AttentionBlock::fragment(const OwnLines &own, int64_t number) {
  if (!own.fragments.empty())
    return own.fragments[number];
  if (way == Way::halves) {
    Value line = emit.add(warpLine, emit.rem(lane, emit.integer(16)));
    Value position = emit.add(emit.mul(line, own.panel.stride), emit.mul(emit.div(lane, emit.integer(16)), 8));
    return loadMatrices(emit,
                        emit.address(emit.address(own.panel.memory, panelType(), position), panelType(), 16 * number),
                        4, /*transposed=*/false);
  }
  Emitter::Values words;
  for (int64_t more : {0, 4})
    for (int64_t half : {0, 1}) {
      Value channel = emit.add(pair, 8 * number + more), one;
      bool whole = 8 * number + 8 <= own.lines.size;
      Value there = whole ? Value() : emit.less(channel, emit.integer(own.lines.size));
      one = emit.load(element, at(ownLine(own, half), whole ? channel : orZero(emit, there, channel)));
      words.push_back(tf32(emit, whole ? one : orZero(emit, there, one)));
    }
  return words;
}

void AttentionBlock::loadFragments(OwnLines &own) {
  SmallVector<Emitter::Values> fragments;
  for (int64_t step = 0, end = ceilDiv(own.lines.size, way == Way::halves ? 16 : 8); step < end; ++step)
    fragments.push_back(fragment(own, step));
  own.fragments = fragments;
}

Emitter::Values AttentionBlock::scoresOfHalves(const OwnLines &own, const LinePanel &panel, int64_t lines) {
  Emitter::Values sums = zeros(tileOfLines(lines).count());
  // Loads four matrices: 16 rows of the panel by 16 channels.
  Value line = emit.add(emit.mul(emit.div(lane, emit.integer(16)), 8), emit.rem(lane, emit.integer(8)));
  Value channel = emit.mul(emit.rem(emit.div(lane, emit.integer(8)), emit.integer(2)), 8);
  Value from = emit.address(panel.memory, panelType(), emit.add(emit.mul(line, panel.stride), channel));
  for (int64_t k = 0; k < panel.size; k += 16) {
    Emitter::Values left = fragment(own, k / 16);
    for (int64_t first = 0; first < lines; first += 16) {
      Emitter::Values right =
          loadMatrices(emit, emit.address(from, panelType(), first * panel.stride + k), 4, /*transposed=*/false);
      for (int64_t piece = 0; piece < 2; ++piece) {
        MutableArrayRef<Value> sum = MutableArrayRef<Value>(sums).slice((first / 8 + piece) * 4, 4);
        llvm::copy(multiplyHalves(emit, element, left, ArrayRef(right).slice(2 * piece, 2), sum), sum.begin());
      }
    }
  }
  return sums;
}

// Two pieces of p have the layout of the left operand of an mma.
Emitter::Values AttentionBlock::addHalves(ValueRange p, int64_t lines, const LinePanel &panel, ValueRange sums) {
  Emitter::Values next(sums);
  Value position =
      emit.add(emit.mul(emit.rem(lane, emit.integer(16)), panel.stride), emit.mul(emit.div(lane, emit.integer(16)), 8));
  Value from = emit.address(panel.memory, panelType(), position);
  for (int64_t first = 0; first < lines; first += 16) {
    Emitter::Values left;
    for (int64_t i = 0; i < 8; i += 2)
      left.push_back(packHalves(emit, element, p[first / 2 + i], p[first / 2 + i + 1]));
    for (int64_t column = 0; column < panel.size; column += 16) {
      Emitter::Values right =
          loadMatrices(emit, emit.address(from, panelType(), first * panel.stride + column), 4, /*transposed=*/true);
      for (int64_t piece = 0; piece < 2; ++piece) {
        MutableArrayRef<Value> sum = MutableArrayRef<Value>(next).slice((column / 8 + piece) * 4, 4);
        llvm::copy(multiplyHalves(emit, element, left, ArrayRef(right).slice(2 * piece, 2), sum), sum.begin());
      }
    }
  }
  return next;
}

Emitter::Values AttentionBlock::scoresOfSingles(const OwnLines &own, const LinePanel &panel, int64_t lines) {
  Type f32 = emit.getF32Type(), i32 = emit.getI32Type();
  Emitter::Values sums = zeros(tileOfLines(lines).count());
  Value from = emit.address(panel.memory, f32, emit.add(emit.mul(group, panel.stride), pair));
  for (int64_t k = 0; k < panel.size; k += 8) {
    Emitter::Values left = fragment(own, k / 8);
    for (int64_t first = 0; first < lines; first += 8) {
      Emitter::Values right;
      for (int64_t more : {0, 4})
        right.push_back(emit.load(i32, emit.address(from, f32, first * panel.stride + k + more)));
      MutableArrayRef<Value> sum = MutableArrayRef<Value>(sums).slice(first / 2, 4);
      llvm::copy(multiplySingles(emit, left, right, sum), sum.begin());
    }
  }
  return sums;
}

// Position t of k is row 2 t of the panel, and position t + 4 is row 2 t + 1, so that a piece of p has the layout of
// the left operand.
Emitter::Values AttentionBlock::addSingles(ValueRange p, int64_t lines, const LinePanel &panel, ValueRange sums) {
  Type f32 = emit.getF32Type(), i32 = emit.getI32Type();
  Emitter::Values next(sums);
  Value from = emit.address(panel.memory, f32, emit.add(emit.mul(emit.mul(pair, 2), panel.stride), group));
  for (int64_t first = 0; first < lines; first += 8) {
    Emitter::Values left;
    for (int64_t i : {0, 2, 1, 3})
      left.push_back(tf32(emit, p[first / 2 + i]));
    for (int64_t column = 0; column < panel.size; column += 8) {
      Emitter::Values right;
      for (int64_t more : {0, 1})
        right.push_back(emit.load(i32, emit.address(from, f32, (first + more) * panel.stride + column)));
      MutableArrayRef<Value> sum = MutableArrayRef<Value>(next).slice(column / 2, 4);
      llvm::copy(multiplySingles(emit, left, right, sum), sum.begin());
    }
  }
  return next;
}

// The block's own rows are read from device memory, through the cache.
Emitter::Values AttentionBlock::scoresByFma(const OwnLines &own, const LinePanel &panel, int64_t lines) {
  Type f32 = emit.getF32Type();
  WarpTile tile = tileOfLines(lines);
  int64_t chunk = chunkOfSize(own.lines.size, 4);
  Value left[] = {ownLine(own, 0), ownLine(own, 1)};
  Value right = emit.address(panel.memory, f32, emit.mul(emit.mul(pair, 2), panel.stride));
  auto part = [&](Value loaded, int64_t j) { return chunk == 1 ? loaded : emit.extract(loaded, j); };
  return emit.loop(
      emit.integer(0), emit.integer(own.lines.size), chunk, zeros(tile.count()), [&](Value k, ValueRange carried) {
        Emitter::Values next(carried);
        Value a[] = {loadChunk(emit, element, at(left[0], k), chunk), loadChunk(emit, element, at(left[1], k), chunk)};
        Value line = emit.address(right, f32, k);
        for (int64_t i = 0; i < tile.count(); i += i % 2 ? 3 : 1) { // elements of the thread's first row
          Value b = loadChunk(emit, f32, emit.address(line, f32, tile.column(i) * panel.stride), chunk);
          for (int64_t half : {0, 1})
            for (int64_t j = 0; j < chunk; ++j) {
              Value &sum = next[i + 2 * half];
              sum = emit.fma(part(a[half], j), part(b, j), sum);
            }
        }
        return next;
      });
}

// Passes p through workgroup memory, where each warp reads only what its own lanes wrote.
Emitter::Values AttentionBlock::addByFma(ValueRange p, int64_t lines, const LinePanel &panel, ValueRange sums) {
  Type f32 = emit.getF32Type();
  WarpTile from = tileOfLines(lines), to = tileOfSize(panel.size);
  int64_t stride = lines + 4;
  Value line = emit.address(probabilities, f32, emit.mul(emit.add(warpLine, group), stride));
  Value mine = emit.address(line, f32, emit.mul(pair, from.wide));
  kernel.warpBarrier();
  for (int64_t i = 0; i < from.count(); i += 2)
    storeChunk(emit, p.slice(i, 2), emit.address(mine, f32, 8 * from.half(i) * stride + from.column(i)));
  kernel.warpBarrier();
  Value right = emit.address(panel.memory, f32, emit.mul(pair, to.wide));
  constexpr int64_t vectorWidth = 4;
  return emit.loop(emit.integer(0), emit.integer(lines), vectorWidth, sums, [&](Value k, ValueRange carried) {
    Emitter::Values next(carried);
    Value a[2], row = emit.address(right, f32, emit.mul(k, panel.stride));
    for (int64_t half : {0, 1})
      a[half] = loadChunk(emit, f32, emit.address(emit.address(line, f32, k), f32, 8 * half * stride), vectorWidth);
    for (int64_t j = 0; j < vectorWidth; ++j)
      for (int64_t i = 0; i < to.count(); i += 2 * to.wide) {
        Value b = loadChunk(emit, f32, emit.address(row, f32, j * panel.stride + to.column(i)), to.wide);
        for (int64_t half : {0, 1})
          for (int64_t c = 0; c < to.wide; ++c) {
            Value &sum = next[i + half * to.wide + c];
            sum = emit.fma(emit.extract(a[half], j), emit.extract(b, c), sum);
          }
      }
    return next;
  });
}
