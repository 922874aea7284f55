// SPDX-License-Identifier: Apache-2.0
//
// Sums over the samples: weight gradients, and sums of operands over the rows.
#include "compiler/codegen/gpu/Tree.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/KernelKinds.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mtc;

int64_t mtc::siblingLevels(plan::KernelOp op, bool fast) {
  if (fast)
    return 1;
  return std::max<int64_t>(1, llvm::Log2_64_Ceil(mt::Compilation(op).getShards()));
}

namespace {
// Memory of a thread's completed left siblings: element `i` of a level is `step` elements after element i - 1.
struct SiblingStack {
  Value base;
  int64_t level, step;
};
} // namespace

// In workgroup memory if there is room, else in the thread's local memory.
static SiblingStack stackOf(BlockKernel &kernel, int64_t sums, int64_t levels) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  int64_t threads = kernel.gpu.threads;
  if (kernel.gpu.sharedBytes + 4 * levels * sums * threads <= maxSharedBytes) {
    Value memory = kernel.allocateShared(f32, levels * sums * threads);
    return {emit.address(memory, f32, kernel.thread), sums * threads, threads};
  }
  OpBuilder::InsertionGuard guard(emit);
  auto function = emit.getInsertionBlock()->getParentOp()->getParentOfType<gpu::GPUFuncOp>();
  emit.setInsertionPointToStart(&function.getBody().front());
  return {LLVM::AllocaOp::create(emit, emit.pointer(), f32, emit.integer(levels * sums), 16), sums, 1};
}

void mtc::emitBlockTree(BlockKernel &kernel, int64_t sums, llvm::function_ref<Emitter::Values(Value, Value)> shard,
                        llvm::function_ref<void(ValueRange)> finish) {
  emitBlockTree(kernel, sums, shardsOf(kernel), shard, finish);
}

void mtc::emitBlockTree(BlockKernel &kernel, int64_t sums, const Shards &shards,
                        llvm::function_ref<Emitter::Values(Value, Value)> shard,
                        llvm::function_ref<void(ValueRange)> finish) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  SiblingStack stack = stackOf(kernel, sums, std::max<int64_t>(1, shards.levels - 1));
  // A thread reads only what it has written.
  auto levelAt = [&](Value level) { return emit.address(stack.base, f32, emit.mul(level, stack.level)); };
  auto add = [&](Value level, ValueRange values) {
    Value left = levelAt(level);
    Emitter::Values nodes;
    for (auto [i, value] : llvm::enumerate(values))
      nodes.push_back(arith::AddFOp::create(emit, emit.load(f32, emit.address(left, f32, i * stack.step)), value));
    return nodes;
  };
  auto save = [&](Value level, ValueRange values) {
    Value slot = levelAt(level);
    for (auto [i, value] : llvm::enumerate(values))
      emit.store(value, emit.address(slot, f32, i * stack.step));
  };
  emitTree(emit, shards, emit.integer(0), shards.count, Emitter::Values(sums, emit.zeros(f32)), {add, save}, shard,
           finish);
}

static mt::BatchProduct batchProductOf(plan::KernelOp op) {
  return mt::batchProductOf(op.getBody().front().getTerminator()->getOperand(0));
}

static ProductTree matmulTree(plan::KernelOp op, int64_t shardRows) {
  mt::MatmulOp product = batchProductOf(op).product;
  int64_t rows = tensorOf(product.getLhs()).getShape().back(), columns = tensorOf(product.getRhs()).getShape().back();
  return productTree(op, rows, columns, /*count=*/1, linesOf(product.getLhs()), shardRows);
}

GpuGrid mtc::matmulWgradGpuGrid(plan::KernelOp op, int64_t shardRows) {
  return treeGrid(op, matmulTree(op, shardRows), shardRows);
}

LogicalResult mtc::emitBlockMatmulWgrad(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  mt::BatchProduct batch = batchProductOf(kernel.op);
  mt::MatmulOp product = batch.product;
  int64_t height = tensorOf(product.getLhs()).getShape().back(), columns = tensorOf(product.getRhs()).getShape().back();
  ProductTree tree = matmulTree(kernel.op, kernel.shardRows);
  Type element = elementOf(product.getLhs());
  ProductTile tile = withDepth(kernel, tree.tile, element);
  int64_t across = (columns + tile.columns - 1) / tile.columns;
  Value number = resultTile(kernel, tree);
  Value firstRow = emit.mul(emit.div(number, emit.integer(across)), tile.rows);
  Value firstColumn = emit.mul(emit.rem(number, emit.integer(across)), tile.columns);
  ProductBlock block(kernel, tile, element);
  auto sideOf = [&](Value side, Value first, int64_t end, Value to) {
    Value whole = mt::holderOf(side);
    return matrixAcross(kernel, whole, tensorOf(whole).getShape().back(), {first, emit.integer(end)}, to);
  };
  auto sum = [&](Value, Value from, Value to) {
    return block.add(sideOf(product.getLhs(), firstRow, height, to), sideOf(product.getRhs(), firstColumn, columns, to),
                     panelsOf(emit, tile, from, to), block.zeros());
  };
  emitProductTree(kernel, block, tree, sum, [&](ValueRange root) {
    Value result = kernel.resultLoadedHere(0);
    int64_t vectorWidth = storedWidth(std::gcd(std::gcd(batch.first, batch.stride), columns));
    block.finish(root, vectorWidth, [&](Value line, Value across, ValueRange sums) {
      Value row = emit.add(firstRow, line), column = emit.add(firstColumn, across);
      Value there = both(emit, emit.less(row, emit.integer(height)), emit.less(column, emit.integer(columns)));
      Value at = emit.add(emit.add(emit.mul(row, batch.stride), column), batch.first);
      Value to = emit.address(result, f32, at);
      return ProductResult{there, storesOf(emit, sums, to)};
    });
  });
  return success();
}
