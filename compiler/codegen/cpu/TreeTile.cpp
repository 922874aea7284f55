// SPDX-License-Identifier: Apache-2.0
//
// Tiles of trees of any number of shards.
#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Tile.h"
#include "compiler/codegen/cpu/WholeTree.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mtc;

// The sums of a node in registers: the chain of a shard, or the sums of two child nodes, added. A shard has `size`
// samples. A right child without samples adds nothing.
static Emitter::Values emitNode(Emitter &emit, int64_t height, Value size, Value from, Value end,
                                llvm::function_ref<Emitter::Values(Value from, Value end)> shard) {
  if (height == 0)
    return shard(from, end);
  Value middle = emit.add(from, emit.mul(size, int64_t(1) << (height - 1)));
  Emitter::Values left = emitNode(emit, height - 1, size, from, emit.min(middle, end), shard);
  auto choice = scf::IfOp::create(emit, TypeRange(ValueRange(left)), emit.less(middle, end), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(emit);
  emit.setInsertionPointToEnd(choice.thenBlock());
  Emitter::Values sums = emitNode(emit, height - 1, size, middle, end, shard);
  for (auto [sum, sibling] : llvm::zip_equal(sums, left))
    sum = arith::AddFOp::create(emit, sibling, sum);
  scf::YieldOp::create(emit, sums);
  emit.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(emit, left);
  return Emitter::Values(choice.getResults());
}

LLVM::LLVMFuncOp mtc::treeFunction(Emitter &emit, Terms terms, int64_t rows, int64_t vectors, int64_t levels,
                                   int64_t inner) {
  std::string name = llvm::formatv("tree_{0}x{1}_{2}_{3}{4}", rows, vectors, levels, inner,
                                   terms == Terms::swapped ? "_swapped" : suffixOf(terms));
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.realType();
  SmallVector<Type> types{pointer, i64, pointer, i64, i64, i64, i64, i64, pointer, pointer, i64, i64};
  return emit.function(name, types, /*internal=*/true, [&](ValueRange arguments) {
    Value stride = arguments[1], packed = arguments[2], size = arguments[4], step = arguments[10];
    int64_t unit = int64_t(1) << inner;
    auto units = [&](Value count) { return emit.ceilDiv(count, unit); };
    Shards nodes{arguments[3], emit.mul(size, unit), units(arguments[5]), levels};
    Value first = units(arguments[6]), all = units(arguments[7]);
    emit.loop(emit.integer(0), arguments[11], 1, [&](Value tile) {
      Value row = emit.mul(tile, rows);
      Value a = emit.address(arguments[0], f32, row), to = emit.address(arguments[9], f32, emit.mul(row, step));
      Value stack = emit.address(arguments[8], f32, emit.mul(row, vectors * lanes * levels));
      Emitter::Values zeros(rows * vectors, emit.zeros(emit.vectorOf(f32)));
      auto add = [&](Value sample, ValueRange sums) {
        Value left = emit.address(a, f32, emit.mul(sample, stride));
        return emitOuterProduct(emit, terms, left, emit.address(packed, f32, emit.mul(sample, vectors * lanes)), rows,
                                vectors, sums);
      };
      auto shard = [&](Value from, Value end) {
        Emitter::Values sums;
        emitChains(emit, terms, [&] { sums = emit.loop(from, end, 1, zeros, add); });
        return sums;
      };
      auto node = [&](Value from, Value end) { return emitNode(emit, inner, size, from, end, shard); };
      emitTree(emit, nodes, first, all, stack, rows * vectors, node,
               [&](ValueRange root) { storeTile(emit, root, to, step, vectors); });
    });
  });
}
