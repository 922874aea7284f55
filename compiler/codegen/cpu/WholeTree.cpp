// SPDX-License-Identifier: Apache-2.0
//
// Trees without missing shards or samples that are small enough to be unrolled.
#include "compiler/codegen/cpu/WholeTree.h"
#include "compiler/codegen/cpu/Tile.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mtc;

namespace {
// A node of an unrolled tree, without branches and loops. Sums of shards stay in registers until their sibling is
// complete; sums of higher nodes are stored in `slots` by volatile accesses. Left to the register allocator, which
// would have to spill them, they cost a third more time.
class WholeNode {
public:
  WholeNode(Emitter &emit, Terms terms, Value a, Value stride, Value packed, Value slots, int64_t rows, int64_t vectors,
            int64_t size)
      : emit(emit), terms(terms), a(a), stride(stride), packed(packed), slots(slots), rows(rows), vectors(vectors),
        size(size) {}

  Emitter::Values sums(int64_t height);

private:
  Emitter &emit;
  Terms terms;
  Value a, stride, packed, slots; // `a` and `packed` advance with the samples
  int64_t rows, vectors, size;

  Emitter::Values shard();
  Value slot(int64_t height, int64_t index) {
    return emit.address(slots, emit.realType(), (height * rows * vectors + index) * lanes);
  }
};
} // namespace

Emitter::Values WholeNode::shard() {
  Type f32 = emit.realType();
  Emitter::Values sums(rows * vectors, emit.zeros(emit.vectorOf(f32)));
  for (int64_t sample = 0; sample < size; ++sample) {
    sums = emitOuterProduct(emit, terms, a, emit.address(packed, f32, sample * vectors * lanes), rows, vectors, sums);
    a = emit.address(a, f32, stride);
  }
  packed = emit.address(packed, f32, size * vectors * lanes);
  return sums;
}

Emitter::Values WholeNode::sums(int64_t height) {
  if (height == 0)
    return shard();
  constexpr unsigned alignment = 64;
  bool inMemory = height > 1;
  Emitter::Values left = sums(height - 1);
  if (inMemory)
    for (auto [i, value] : llvm::enumerate(left))
      LLVM::StoreOp::create(emit, value, slot(height - 2, i), alignment, /*isVolatile=*/true);
  Emitter::Values both = sums(height - 1);
  for (auto [i, sum] : llvm::enumerate(both)) {
    Value sibling = left[i];
    if (inMemory)
      sibling = LLVM::LoadOp::create(emit, sum.getType(), slot(height - 2, i), alignment, /*isVolatile=*/true);
    sum = arith::AddFOp::create(emit, sibling, sum);
  }
  return both;
}

void mtc::storeTile(Emitter &emit, ValueRange sums, Value to, Value step, int64_t vectors) {
  Type f32 = emit.realType();
  for (auto [i, sum] : llvm::enumerate(sums)) {
    int64_t row = i / vectors, vector = i % vectors;
    emit.storeLanes(sum, emit.address(emit.address(to, f32, emit.mul(step, row)), f32, vector * lanes));
  }
}

LLVM::LLVMFuncOp mtc::wholeTreeFunction(Emitter &emit, Terms terms, int64_t rows, int64_t vectors, int64_t height,
                                        int64_t size) {
  std::string name = llvm::formatv("whole_tree_{0}x{1}_{2}x{3}{4}", rows, vectors, height, size,
                                   suffixOf(terms)); // shards differ between kernels
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.realType();
  SmallVector<Type> types{pointer, i64, pointer, pointer, i64, i64, pointer};
  return emit.function(name, types, /*internal=*/true, [&](ValueRange arguments) {
    Value stride = arguments[1], packed = arguments[2], step = arguments[4], slots = arguments[6];
    emit.loop(emit.integer(0), arguments[5], 1, [&](Value tile) {
      Value row = emit.mul(tile, rows);
      Value a = emit.address(arguments[0], f32, row), to = emit.address(arguments[3], f32, emit.mul(row, step));
      WholeNode tree(emit, terms, a, stride, packed, slots, rows, vectors, size);
      storeTile(emit, tree.sums(height), to, step, vectors);
    });
  });
}
