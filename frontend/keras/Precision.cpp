// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Precision.h"
#include "dialects/mt/Compilation.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace mtc::keras {

llvm::StringRef precisionOf(llvm::StringRef policy) {
  return llvm::StringSwitch<llvm::StringRef>(policy)
      .Cases({"float32", "float64"}, "f32")
      .Case("mixed_bfloat16", "bf16")
      .Case("mixed_float16", "f16")
      .Default("");
}

void markPrecision(Block &block, Operation *last, llvm::StringRef precision) {
  for (Operation &op : llvm::make_range(last ? std::next(Block::iterator(last)) : block.begin(), block.end()))
    op.walk([&](Operation *inner) {
      if (inner->hasTrait<mt::Contraction>())
        mt::setPrecision(inner, StringAttr::get(op.getContext(), precision));
    });
}

LogicalResult settlePrecision(ModuleOp module) {
  Operation *first = nullptr; // the first op of 16 bits
  LogicalResult result = success();
  module.walk([&](Operation *op) {
    StringAttr precision = mt::precisionOf(op);
    if (!precision || precision == "f32")
      return;
    if (!first)
      first = op;
    else if (precision != mt::precisionOf(first))
      result = op->emitError("expected layers of one policy of 16 bits, found mixed_bfloat16 and mixed_float16");
  });
  if (failed(result))
    return failure();
  StringAttr chosen = first ? mt::precisionOf(first) : StringAttr();
  module.walk([&](Operation *op) {
    if (!chosen || mt::precisionOf(op) == chosen)
      mt::setPrecision(op, {});
  });
  if (chosen)
    mt::Compilation(module).setPrecision(chosen.getValue());
  return success();
}

} // namespace mtc::keras
