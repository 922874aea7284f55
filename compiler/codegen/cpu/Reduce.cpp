// SPDX-License-Identifier: Apache-2.0
//
// Sums over the rows of several operands along the tree.
#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Tile.h"

using namespace mlir;
using namespace mtc;

// Lanes of a row from `column` on, by `mask`.
using LoadLanes = llvm::function_ref<Value(Value row, Value column, Value mask)>;

// Columns from `column` on of the sum of rows that `load` loads: a panel of vectors in registers.
static void emitColumns(Kernel &kernel, const Shards &shards, LoadLanes load, Value to, Value column, Panel panel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.realType();
  Value mask = panel.last < lanes ? emit.maskBelow(panel.last) : Value();
  auto maskOf = [&](int64_t vector) { return vector + 1 == panel.vectors ? mask : Value(); };
  Value stack = emit.array(f32, shards.levels * panel.width());
  Value continues = kernel.op.getContinues() ? kernel.continues() : Value();
  auto shard = [&](Value first, Value end) {
    Emitter::Values start(panel.vectors, emit.zeros(emit.vectorOf(f32)));
    for (int64_t vector = 0; continues && vector < panel.vectors; ++vector) {
      Value address = emit.address(emit.address(to, f32, column), f32, vector * lanes);
      start[vector] =
          arith::SelectOp::create(emit, continues, emit.loadLanes(f32, address, maskOf(vector)), start[vector]);
    }
    return emit.loop(first, end, 1, start, [&](Value row, ValueRange carried) {
      Emitter::Values next;
      for (auto [vector, sum] : llvm::enumerate(carried)) {
        Value taken = load(row, emit.add(column, static_cast<int64_t>(vector) * lanes), maskOf(vector));
        next.push_back(arith::AddFOp::create(emit, sum, taken));
      }
      return next;
    });
  };
  emitTree(emit, shards, emit.integer(0), shards.count, stack, panel.vectors, shard, [&](ValueRange root) {
    Value address = emit.address(to, f32, column);
    for (auto [vector, sum] : llvm::enumerate(root))
      emit.storeLanes(sum, emit.address(address, f32, vector * lanes), maskOf(vector));
  });
}

namespace {
// Consecutive operands with rows of the same size and type, which share code.
struct Alike {
  int64_t operand; // number of the first operand
  int64_t size;    // number of operands
  Type element;
  int64_t count;  // elements of a row
  Value computed; // the operand, if it is computed from others; else null
};
} // namespace

static std::vector<Alike> findAlike(Kernel &kernel) {
  std::vector<Alike> all;
  for (Value yield : kernel.yields()) {
    Value summed = yield.getDefiningOp<mt::ReduceOp>().getOperand();
    auto operand = dyn_cast<BlockArgument>(summed);
    if (!operand) {
      all.push_back({0, 1, elementOf(summed), innerCount(summed), summed});
      continue;
    }
    Alike next = {operand.getArgNumber(), 1, elementOf(operand), innerCount(operand), {}};
    if (!all.empty() && !all.back().computed && all.back().operand + all.back().size == next.operand &&
        all.back().element == next.element && all.back().count == next.count)
      ++all.back().size;
    else
      all.push_back(next);
  }
  return all;
}

// Lanes of a row of a computed operand. The operands of its ops have as many elements per row, or one.
static Value computedLanes(Kernel &kernel, Value operand, Value row, Value column, Value mask) {
  Emitter &emit = kernel.emit;
  VectorBody body(kernel, /*scalar=*/false, [&](Value value) -> Value {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return Value();
    Type element = elementOf(value);
    int64_t count = innerCount(value);
    Value from = emit.loadPointer(kernel.buffers, emit.integer(argument.getArgNumber()));
    Value index = count == 1 ? emit.integer(0) : column;
    if (isSplit(value))
      index = emit.add(emit.mul(row, count), index);
    Value address = emit.address(from, element, index);
    return count == 1 ? emit.splat(emit.load(element, address)) : emit.loadLanes(element, address, mask);
  });
  return body.get(operand);
}

LogicalResult mtc::emitReduce(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  Shards shards = shardsOf(kernel);
  std::vector<Alike> all = findAlike(kernel);
  emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) {
    int64_t tiles = 0, result = kernel.body().getNumArguments();
    for (const Alike &alike : all) {
      int64_t each = (alike.count + panelColumns - 1) / panelColumns, end = tiles + each * alike.size;
      Value inside =
          arith::AndIOp::create(emit, emit.less(emit.integer(tiles - 1), tile), emit.less(tile, emit.integer(end)));
      emit.when(inside, [&] {
        Value own = emit.add(tile, -tiles);
        Value number = alike.size == 1 ? emit.integer(0) : emit.div(own, emit.integer(each));
        Value column = emit.mul(emit.sub(own, emit.mul(number, each)), panelColumns);
        Value from = alike.computed ? Value() : emit.loadPointer(kernel.buffers, emit.add(number, alike.operand));
        auto load = [&](Value row, Value at, Value mask) {
          if (alike.computed)
            return computedLanes(kernel, alike.computed, row, at, mask);
          Value index = emit.add(emit.mul(row, alike.count), at);
          return emit.loadLanes(alike.element, emit.address(from, alike.element, index), mask);
        };
        Value to = emit.loadPointer(kernel.buffers, emit.add(number, result));
        forPanels(emit, alike.count, column, emit.add(column, panelColumns),
                  [&](Value at, Panel panel) { emitColumns(kernel, shards, load, to, at, panel); });
      });
      tiles = end;
      result += alike.size;
    }
  });
  return success();
}
