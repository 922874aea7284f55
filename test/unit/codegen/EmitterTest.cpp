// SPDX-License-Identifier: Apache-2.0
//
// Constant offsets of 2^28 elements and more (1 GiB of a tensor): they lost their upper bits, and code read elsewhere.
#include "compiler/codegen/common/Emitter.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace {

// The constant index of the last address that `write` makes: as the op has it, or of the constant that is its operand.
template <typename Write> int64_t indexOf(Write write) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, scf::SCFDialect, LLVM::LLVMDialect>();
  OwningOpRef<ModuleOp> module(ModuleOp::create(UnknownLoc::get(&context)));
  mtc::Emitter emit(*module, mtc::VectorUnit{});
  int64_t index = -1;
  emit.function("f", {emit.pointer()}, /*internal=*/false, [&](ValueRange arguments) {
    write(emit, arguments[0]);
    emit.getInsertionBlock()->walk([&](LLVM::GEPOp gep) {
      index = gep.getRawConstantIndices()[0];
      if (index == LLVM::GEPOp::kDynamicIndex)
        index = cast<IntegerAttr>(gep.getDynamicIndices()[0].getDefiningOp<arith::ConstantOp>().getValue()).getInt();
    });
  });
  return index;
}

TEST(Emitter, KeepsAllBitsOfAnOffset) {
  for (int64_t offset : {int64_t(7), int64_t(1) << 28, int64_t(INT32_MAX), int64_t(1) << 33, -(int64_t(1) << 33)}) {
    EXPECT_EQ(indexOf([&](mtc::Emitter &emit, Value base) { emit.address(base, emit.getF32Type(), offset); }), offset);
    EXPECT_EQ(indexOf([&](mtc::Emitter &emit, Value base) {
                emit.address(base, emit.getF32Type(), emit.integer(3), offset);
              }),
              offset);
    EXPECT_EQ(indexOf([&](mtc::Emitter &emit, Value base) { emit.loadPointer(base, offset); }), offset);
  }
}

} // namespace
