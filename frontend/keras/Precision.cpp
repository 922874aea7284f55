// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Precision.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace mtc::keras {

static constexpr llvm::StringLiteral attribute = "mt.precision";

llvm::StringRef precisionOf(llvm::StringRef policy) {
  return llvm::StringSwitch<llvm::StringRef>(policy)
      .Cases({"float32", "float64"}, "f32")
      .Case("mixed_bfloat16", "bf16")
      .Case("mixed_float16", "f16")
      .Default("");
}

void markPrecision(Block &block, Operation *last, llvm::StringRef precision) {
  for (Operation &op : llvm::make_range(last ? std::next(Block::iterator(last)) : block.begin(), block.end()))
    if (op.hasTrait<mt::Contraction>())
      op.setAttr(attribute, StringAttr::get(op.getContext(), precision));
}

LogicalResult settlePrecision(ModuleOp module) {
  Operation *first = nullptr; // of 16 bits
  auto precisionOf = [](Operation *op) { return op->getAttrOfType<StringAttr>(attribute); };
  LogicalResult result = success();
  module.walk([&](Operation *op) {
    StringAttr precision = precisionOf(op);
    if (!precision || precision == "f32")
      return;
    if (!first)
      first = op;
    else if (precision != precisionOf(first))
      result = op->emitError("expected layers of one policy of 16 bits, found mixed_bfloat16 and mixed_float16");
  });
  if (failed(result))
    return failure();
  StringAttr chosen = first ? precisionOf(first) : StringAttr();
  module.walk([&](Operation *op) {
    if (!chosen || precisionOf(op) == chosen)
      op->removeAttr(attribute);
  });
  if (chosen)
    module->setAttr(attribute, chosen);
  return success();
}

} // namespace mtc::keras
