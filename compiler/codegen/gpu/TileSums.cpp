// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/TileSums.h"
#include "compiler/codegen/common/Statements.h"
#include "compiler/codegen/gpu/Sizes.h"

using namespace mlir;
using namespace mtc;

// Rows whose operands a thread loads before it adds the first, if none are in device memory; and tiles whose sums it
// loads before it adds the first.
constexpr int64_t rowsOfTileAtOnce = 2, tilesAtOnce = 4;
// Numbers of a tile, sample and column: as many as threads have room for in the smallest tile's workgroup memory.
constexpr int64_t maxNumbers = 4;

namespace {
// The forms of a sum of pixels x of a sample whose first one is f.
enum class Form { pixels, differences, squares, other, refused };
} // namespace

static Value withoutCasts(Value value) {
  value = resolve(value);
  while (auto wide = value.getDefiningOp<mt::CastOp>())
    value = resolve(wide.getOperand());
  return value;
}

static mt::SliceOp firstPixelOf(Value value) {
  value = resolve(value);
  if (value.getDefiningOp() && periodOf(value))
    value = resolve(value.getDefiningOp()->getOperand(0));
  Operation *op = value.getDefiningOp();
  return isFirstPixel(op) ? withoutCasts(value).getDefiningOp<mt::SliceOp>() : mt::SliceOp();
}

static Form formOf(mt::ReduceOp reduce, Value images) {
  Value operand = resolve(reduce.getOperand());
  if (withoutCasts(operand) == images)
    return Form::pixels;
  auto isDifference = [&](Value value) {
    auto sub = resolve(value).getDefiningOp<mt::SubOp>();
    mt::SliceOp first = sub ? firstPixelOf(sub.getRhs()) : mt::SliceOp();
    return first && resolve(first.getOperand()) == images && withoutCasts(sub.getLhs()) == images;
  };
  if (isDifference(operand))
    return Form::differences;
  auto square = operand.getDefiningOp<mt::SquareOp>();
  if (square && isDifference(square.getOperand()))
    return Form::squares;
  // Another tile may have the first pixel.
  SmallVector<Value> pending{operand};
  for (size_t i = 0; i < pending.size(); ++i)
    if (Operation *op = pending[i].getDefiningOp()) {
      if (isFirstPixel(op))
        return Form::refused;
      pending.append(op->operand_begin(), op->operand_end());
    }
  return Form::other;
}

std::optional<TileSums> mtc::tileSumsOf(plan::KernelOp head, const Tail &tail, int64_t argument, int64_t yield,
                                        const GpuGrid &grid, int64_t shardRows) {
  TileSums sums;
  sums.tail = tail;
  sums.argument = argument;
  sums.yield = yield;
  plan::KernelOp op = tail.op;
  std::optional<TileShape> shape = tileShapeOf(head);
  if (!shape || columnsOf(op) != shape->columns || shardRows % grid.rowsPerTile)
    return std::nullopt;
  static_cast<TileShape &>(sums) = *shape;
  Value images = op.getBody().getArgument(static_cast<unsigned>(argument));
  if (!isa<FloatType>(elementOf(images)))
    return std::nullopt;
  for (Value yielded : op.getBody().front().getTerminator()->getOperands()) {
    auto reduce = resolve(yielded).getDefiningOp<mt::ReduceOp>();
    if (!reduce || reduce.getKind() != mt::Reduction::sum || !elementOf(reduce.getResult()).isF32())
      return std::nullopt;
    Form form = formOf(reduce, images);
    if (form == Form::refused)
      return std::nullopt;
    sums.moments |= form == Form::differences || form == Form::squares;
  }
  for (Operation &inner : op.getBody().front())
    if (auto reduce = dyn_cast<mt::ReduceOp>(inner)) {
      Form form = formOf(reduce, images);
      if (form == Form::other || (form == Form::pixels && !sums.moments))
        sums.sums.push_back(reduce);
    }
  if (sums.numbers() > maxNumbers || (sums.moments && sums.residues > 1))
    return std::nullopt;
  sums.samples = grid.rowsPerTile;
  int64_t rows = sums.samples * sums.pixels, each = sums.tile.rows;
  sums.tilesDown = ceilDiv(rows, each);
  sums.slots = 1;
  for (int64_t i = 0; i < sums.tilesDown; ++i)
    sums.slots = std::max(sums.slots, (std::min((i + 1) * each, rows) - 1) / sums.pixels - i * each / sums.pixels + 1);
  return sums;
}

TileTerms::TileTerms(BlockKernel &kernel, const TileSums &sums, Value sample, Value column, const Shared *known)
    : BlockElements(kernel), sums(sums), column(column) {
  if (known)
    shared = *known;
  bindRow(sample);
  for (Operation &op : kernel.body().without_terminator())
    for (Value operand : op.getOperands()) {
      Value root = resolve(operand);
      if (!root.getDefiningOp() || periodOf(root) != sums.columns || shared.contains(root))
        continue;
      Value repeated = root.getDefiningOp()->getOperand(0);
      if (!isFirstPixel(repeated.getDefiningOp()) && (!isSplit(repeated) || known))
        shared[root] = adjacent(repeated, column, elementsPerThread);
    }
}

Emitter::Values TileTerms::of(Value pixel, ValueRange image) {
  Value index = emit.add(emit.mul(pixel, sums.columns), column);
  Chunk chunk = chunkAt(index, elementsPerThread);
  chunk.elements = shared;
  chunk.elements[kernel.body().getArgument(static_cast<unsigned>(sums.argument))] = Emitter::Values(image);
  Emitter::Values terms;
  for (int64_t lane = 0; lane < elementsPerThread; ++lane) {
    VectorBody body =
        bodyAt({emit.add(index, lane), sums.pixels * sums.columns, emit.add(column, lane), sums.columns, &chunk, lane});
    for (mt::ReduceOp reduce : sums.sums)
      terms.push_back(body.get(reduce.getOperand()));
  }
  return terms;
}

namespace {
struct Float {
  Emitter *emit;
  Value value;
  Float operator+(Float other) const { return {emit, arith::AddFOp::create(*emit, value, other.value)}; }
  Float operator-(Float other) const { return {emit, arith::SubFOp::create(*emit, value, other.value)}; }
  Float operator*(Float other) const { return {emit, arith::MulFOp::create(*emit, value, other.value)}; }
};
} // namespace

static Float floatOf(Emitter &emit, Value integer) {
  return {&emit, arith::SIToFPOp::create(emit, emit.getF32Type(), integer)};
}

TileAdder::TileAdder(BlockKernel &head, const TileRows &rows)
    : head(head), emit(head.emit), sums(*head.sums), rows(rows),
      kernel(tailKernel(head, head.sums->tail, buffersOf(head.op))) {
  kernel.bindPointers();
  across = sums.tile.columns / elementsPerThread;
  apart = sums.tile.threads() / across;
  column = emit.mul(emit.rem(head.thread, emit.integer(across)), elementsPerThread);
  within = emit.div(head.thread, emit.integer(across));
  inRow = emit.add(emit.mul(emit.rem(head.tile, emit.integer(sums.across())), sums.tile.columns), column);
  shared = TileTerms(kernel, sums, rows.sample, inRow, nullptr).values();
  Value valid = emit.min(emit.integer(sums.tile.rows), emit.sub(emit.integer(sums.samples * sums.pixels), rows.first));
  Value number = sums.samples == 1 ? emit.integer(0) : emit.div(rows.first, emit.integer(sums.pixels));
  for (int64_t i = 0; i < sums.slots; ++i) {
    Slot slot;
    Value inGroup = slot.inGroup = emit.add(number, i);
    Value sample = emit.add(rows.sample, inGroup), exists = emit.less(sample, rows.end);
    slot.sample = arith::SelectOp::create(emit, exists, sample, rows.sample);
    slot.start = emit.sub(emit.mul(inGroup, sums.pixels), rows.first);
    slot.begin = emit.max(emit.integer(0), slot.start);
    Value end = emit.min(valid, emit.add(slot.start, sums.pixels));
    slot.end = arith::SelectOp::create(emit, exists, end, slot.begin);
    Value zero = emit.zeros(emit.getF32Type());
    slot.shift.assign(elementsPerThread, zero);
    slot.running.assign(static_cast<size_t>(elementsPerThread * sums.numbers()), zero);
    slots.push_back(slot);
  }
}

void TileAdder::add(Value staged, int64_t stride, int64_t first, int64_t count) {
  Type f32 = emit.getF32Type();
  auto imageAt = [&](Value row) {
    Value line = emit.mul(emit.sub(row, emit.integer(first)), stride);
    Value chunk = loadChunk(emit, f32, emit.address(staged, f32, emit.add(line, column)), elementsPerThread);
    Emitter::Values image;
    for (int64_t lane = 0; lane < elementsPerThread; ++lane)
      image.push_back(emit.extract(chunk, lane));
    return image;
  };
  // Other operands come from device memory.
  int64_t atOnce = kernel.body().getNumArguments() > 1 ? 2 * rowsOfTileAtOnce : rowsOfTileAtOnce;
  for (Slot &slot : slots) {
    Value from = emit.max(slot.begin, emit.integer(first)), to = emit.min(slot.end, emit.integer(first + count));
    if (sums.moments) {
      Value here = both(emit, emit.less(emit.integer(first - 1), slot.begin),
                        emit.less(slot.begin, emit.integer(first + count)));
      Emitter::Values image = imageAt(arith::SelectOp::create(emit, here, slot.begin, emit.integer(first)));
      for (auto [shift, pixel] : llvm::zip_equal(slot.shift, image))
        shift = arith::SelectOp::create(emit, here, pixel, shift);
    }
    Value begin = emit.add(emit.mul(emit.div(from, emit.integer(apart)), apart), within);
    begin = arith::SelectOp::create(emit, emit.less(begin, from), emit.add(begin, apart), begin);
    TileTerms terms(kernel, sums, slot.sample, inRow, &shared);
    slot.running = emit.loop(begin, to, atOnce * apart, slot.running, [&](Value row, ValueRange before) {
      Emitter::Values running(before);
      for (int64_t i = 0; i < atOnce; ++i) {
        Value next = emit.add(row, i * apart), there = emit.less(next, to);
        next = arith::SelectOp::create(emit, there, next, row);
        auto [pixel, exists] = rows.pixel(emit.sub(next, slot.start));
        if (exists) {
          there = both(emit, there, exists);
          pixel = orZero(emit, there, pixel);
        }
        Emitter::Values image = imageAt(next), others = terms.of(pixel, image), added;
        for (size_t lane = 0, each = sums.sums.size(); lane < image.size(); ++lane) {
          if (sums.moments) {
            Float difference = Float{&emit, image[lane]} - Float{&emit, slot.shift[lane]};
            added.append({difference.value, (difference * difference).value});
          }
          added.append(others.begin() + lane * each, others.begin() + (lane + 1) * each);
        }
        for (auto [sum, term] : llvm::zip_equal(running, added))
          sum = arith::AddFOp::create(emit, sum, orZero(emit, there, term));
      }
      return running;
    });
  }
}

void TileAdder::store(Value memory) {
  Type f32 = emit.getF32Type();
  int64_t numbers = sums.numbers(), columns = sums.tile.columns;
  Value down = emit.div(head.tile, emit.integer(sums.across()));
  Value part = emit.div(down, emit.integer(sums.tilesDown)), tile = emit.rem(down, emit.integer(sums.tilesDown));
  Value firstColumn = emit.sub(inRow, column);
  for (Slot &slot : slots) {
    head.barrier();
    for (int64_t i = 0; i < numbers; ++i) { // of each number, [row, column]
      Emitter::Values line;
      for (int64_t lane = 0; lane < elementsPerThread; ++lane)
        line.push_back(slot.running[lane * numbers + i]);
      Value row = emit.add(emit.mul(within, columns), column);
      storeChunk(emit, line, emit.address(memory, f32, row, i * apart * columns));
    }
    head.barrier();
    Value any = both(emit, emit.less(head.thread, emit.integer(columns)), emit.less(slot.begin, slot.end));
    emit.when(any, [&] {
      auto load = [&](int64_t number, int64_t row) {
        Value from = emit.address(memory, f32, head.thread, (number * apart + row) * columns);
        return Float{&emit, emit.load(f32, from)};
      };
      SmallVector<Float> totals;
      for (int64_t i = 0; i < numbers; ++i) {
        totals.push_back(load(i, 0));
        for (int64_t row = 1; row < apart; ++row)
          totals[i] = totals[i] + load(i, row);
      }
      Value position = emit.add(emit.mul(part, sums.positions()), emit.add(tile, slot.inGroup));
      Value first = emit.add(emit.mul(position, numbers * sums.columns), emit.add(firstColumn, head.thread));
      for (auto [i, total] : llvm::enumerate(totals))
        emit.store(total.value, emit.address(head.partials(), f32, first, static_cast<int64_t>(i) * sums.columns));
    });
  }
}

void mtc::mergeTileSums(BlockKernel &head, BlockKernel &tail, Value first, Value end, Value part, int64_t parts) {
  Emitter &emit = head.emit;
  const TileSums &sums = *head.sums;
  Type f32 = emit.getF32Type();
  int64_t width = sums.columns / parts, numbers = sums.numbers(), each = sums.tile.rows;
  Value images = tail.body().getArgument(static_cast<unsigned>(sums.argument));
  head.forThreads(emit.integer(0), emit.mul(emit.sub(end, first), width), [&](Value index) {
    Value sample = emit.add(first, emit.div(index, emit.integer(width)));
    Value column = emit.add(emit.mul(part, width), emit.rem(index, emit.integer(width)));
    Value group = emit.div(sample, emit.integer(sums.samples)), inGroup = emit.rem(sample, emit.integer(sums.samples));
    Value begin = emit.mul(inGroup, sums.pixels), last = emit.add(begin, sums.pixels);
    Value from = emit.div(begin, emit.integer(each)), to = emit.ceilDiv(last, each);
    auto pixelAt = [&](Value row) { // of the sample
      Value pixel = emit.add(emit.mul(emit.add(emit.mul(sample, sums.pixels), row), sums.columns), column);
      Value stored = tail.argument(sums.argument);
      return Float{&emit, emit.load(elementOf(images), emit.address(stored, elementOf(images), pixel))};
    };
    Float shift = sums.moments ? pixelAt(emit.integer(0)) : Float{&emit, {}};
    Emitter::Values running(static_cast<size_t>(numbers), emit.zeros(f32));
    for (int64_t residue = 0; residue < sums.residues; ++residue)
      running = emit.loop(from, to, tilesAtOnce, running, [&](Value tile, ValueRange before) {
        Emitter::Values next(before);
        for (int64_t i = 0; i < tilesAtOnce; ++i) {
          Value number = emit.add(tile, i), there = emit.less(number, to);
          number = arith::SelectOp::create(emit, there, number, tile);
          Value top = emit.mul(number, each), part = emit.add(emit.mul(group, sums.residues), residue);
          Value position = emit.add(emit.mul(part, sums.positions()), emit.add(number, inGroup));
          Value inRow = emit.add(emit.mul(position, numbers * sums.columns), column);
          SmallVector<Float> terms;
          for (int64_t j = 0; j < numbers; ++j) {
            Value at = emit.address(head.partials(), f32, inRow, j * sums.columns);
            terms.push_back({&emit, emit.load(f32, at)});
          }
          if (sums.moments) {
            Value row = emit.max(top, begin), count = emit.sub(emit.min(emit.add(top, each), last), row);
            Float distance = pixelAt(emit.sub(row, begin)) - shift, moved = floatOf(emit, count) * distance;
            terms[1] = terms[1] + distance * (terms[0] + terms[0] + moved);
            terms[0] = terms[0] + moved;
          }
          for (auto [sum, term] : llvm::zip_equal(next, terms))
            sum = arith::AddFOp::create(emit, sum, orZero(emit, there, term.value));
        }
        return next;
      });
    for (auto [i, yield] : llvm::enumerate(tail.yields())) {
      auto reduce = resolve(yield).getDefiningOp<mt::ReduceOp>();
      Form form = formOf(reduce, images);
      Value value;
      if (const auto *own = llvm::find(sums.sums, reduce); own != sums.sums.end())
        value = running[2 * sums.moments + (own - sums.sums.begin())];
      else if (form == Form::pixels)
        value = (Float{&emit, running[0]} + shift * floatOf(emit, emit.integer(sums.pixels))).value;
      else
        value = running[form == Form::squares];
      emit.store(value, emit.address(tail.result(i), f32, emit.add(emit.mul(sample, sums.columns), column)));
    }
  });
}
