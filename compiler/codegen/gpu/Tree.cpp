// SPDX-License-Identifier: Apache-2.0
//
// Sums over the samples: weight gradients, sums of operands over the rows.
#include "compiler/codegen/gpu/Tree.h"
#include "compiler/codegen/gpu/Product.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mtc;

int64_t mtc::siblingLevels(plan::KernelOp op, bool fast) {
  if (fast)
    return 1;
  auto replicas = op->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>("mt.replicas");
  return std::max<int64_t>(1, llvm::Log2_64_Ceil(std::max<int64_t>(replicas ? replicas.getInt() : 1 << 12, 1)));
}

void mtc::emitBlockTree(BlockKernel &kernel, int64_t sums, llvm::function_ref<Emitter::Values(Value, Value)> leaf,
                        llvm::function_ref<void(ValueRange)> finish) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  int64_t threads = kernel.gpu.threads;
  Value stack = kernel.share(f32, siblingLevels(kernel.op, kernel.fast) * sums * threads);
  // A thread reads what it wrote itself.
  auto levelAt = [&](Value level) {
    return emit.address(emit.address(stack, f32, emit.mul(level, sums * threads)), f32, kernel.thread);
  };
  auto add = [&](Value level, ValueRange values) {
    Value left = levelAt(level);
    Emitter::Values nodes;
    for (auto [i, value] : llvm::enumerate(values))
      nodes.push_back(arith::AddFOp::create(emit, emit.load(f32, emit.address(left, f32, i * threads)), value));
    return nodes;
  };
  auto save = [&](Value level, ValueRange values) {
    Value place = levelAt(level);
    for (auto [i, value] : llvm::enumerate(values))
      emit.store(value, emit.address(place, f32, i * threads));
  };
  Leaves leaves = leavesOf(kernel);
  emitTree(emit, leaves, emit.integer(0), leaves.count, Emitter::Values(sums, emit.zeros(f32)), {add, save}, leaf,
           finish);
}

// As many samples at a time as a leaf has, and siblings of all levels in workgroup memory.
ProductTile mtc::treeTile(plan::KernelOp op, int64_t leafRows, bool fast) {
  constexpr int64_t mostLevels = 9, mostDepth = 16;
  int64_t depth = fast ? mostDepth : std::min<int64_t>(mostDepth, llvm::bit_ceil(static_cast<uint64_t>(leafRows)));
  if (siblingLevels(op, fast) > mostLevels)
    return {16, 16, depth, 2, 2};
  return {32, 32, depth, 2, 4};
}

// The product whose sum over the batch a value is.
static mt::MatmulOp productOf(Value sum) {
  while (auto reduce = sum.getDefiningOp<mt::ReduceOp>())
    sum = reduce.getOperand();
  return sum.getDefiningOp<mt::MatmulOp>();
}

LogicalResult mtc::emitBlockMatmulTree(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  mt::MatmulOp product = productOf(kernel.yields()[0]);
  if (!product || !product.getTransposeA() || product.getTransposeB() || kernel.yields().size() != 1 ||
      !isa<BlockArgument>(product.getLhs()) || !isa<BlockArgument>(product.getRhs()))
    return kernel.op.emitError("expected one mt.matmul transpose_a of two operands in a kernel of kind matmul_tree");
  int64_t height = tensorOf(product.getLhs()).getShape().back(), columns = tensorOf(product.getRhs()).getShape().back();
  int64_t lines = linesOf(product.getLhs()); // of a sample, in order
  Value a = kernel.argument(cast<BlockArgument>(product.getLhs()).getArgNumber());
  Value b = kernel.argument(cast<BlockArgument>(product.getRhs()).getArgNumber());
  ProductTile tile = treeTile(kernel.op, kernel.leafRows * lines, kernel.fast);
  int64_t across = (columns + tile.columns - 1) / tile.columns;
  Value firstRow = emit.mul(emit.div(kernel.tile, emit.integer(across)), tile.rows);
  Value firstColumn = emit.mul(emit.rem(kernel.tile, emit.integer(across)), tile.columns);
  auto loadFrom = [&](Value base, Value first, int64_t width) {
    return [&emit, f32, base, first, width](Value line, Value sample) {
      Value place = emit.add(first, line);
      auto load = [&] { return emit.load(f32, emit.address(base, f32, emit.add(emit.mul(sample, width), place))); };
      return choose(emit, emit.less(place, emit.integer(width)), load, emit.zeros(f32));
    };
  };
  auto left = loadFrom(a, firstRow, height), right = loadFrom(b, firstColumn, columns);
  ProductBlock block(kernel, tile);
  auto leaf = [&](Value from, Value to) {
    return block.add({false, left}, {false, right}, emit.mul(from, lines), emit.mul(to, lines), block.zeros());
  };
  emitBlockTree(kernel, block.count(), leaf, [&](ValueRange root) {
    for (auto [i, sum] : llvm::enumerate(root)) {
      auto [line, place] = block.placeOf(i);
      Value row = emit.add(firstRow, line), column = emit.add(firstColumn, place), number = sum;
      emit.when(both(emit, emit.less(row, emit.integer(height)), emit.less(column, emit.integer(columns))), [&] {
        emit.store(number, emit.address(kernel.result(0), f32, emit.add(emit.mul(row, columns), column)));
      });
    }
  });
  return success();
}

// Which result a tile is of is found first, so that many results have one code.
LogicalResult mtc::emitBlockReduce(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  int64_t threads = kernel.gpu.threads, tiles = 0, arguments = kernel.body().getNumArguments();
  Value operand, result, count, firstTile; // numbers of buffers, columns, where the result's tiles begin
  for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
    auto reduce = yield.getDefiningOp<mt::ReduceOp>();
    if (!reduce || reduce.getKind() != mt::Reduction::sum || !isa<BlockArgument>(reduce.getOperand()) ||
        !isSplit(reduce.getOperand()) || reduce.getDims() != ArrayRef<int64_t>{0})
      return kernel.op.emitError("expected sums over the rows of operands only in a kernel of kind reduce");
    Value here = emit.less(emit.integer(tiles - 1), kernel.tile);
    auto choose = [&](Value &chosen, int64_t number) {
      Value mine = emit.integer(number);
      chosen = chosen ? Value(arith::SelectOp::create(emit, here, mine, chosen)) : mine;
    };
    choose(operand, cast<BlockArgument>(reduce.getOperand()).getArgNumber());
    choose(result, arguments + i);
    choose(count, innerCount(yield));
    choose(firstTile, tiles);
    tiles += ceilDiv(innerCount(yield), threads);
  }
  Value column = emit.add(emit.mul(emit.sub(kernel.tile, firstTile), threads), kernel.thread);
  emit.when(emit.less(column, count), [&] {
    Value from = emit.address(kernel.place(operand), f32, column);
    Value to = emit.address(kernel.place(result), f32, column);
    auto leaf = [&](Value begin, Value end) {
      return emit.loop(begin, end, 1, emit.zeros(f32), [&](Value row, ValueRange sum) {
        Value taken = emit.load(f32, emit.address(from, f32, emit.mul(row, count)));
        return Emitter::Values{arith::AddFOp::create(emit, sum[0], taken)};
      });
    };
    emitBlockTree(kernel, 1, leaf, [&](ValueRange root) { emit.store(root[0], to); });
  });
  return success();
}
