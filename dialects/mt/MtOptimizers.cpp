// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
using namespace mlir;
using namespace mlir::mt;
#define STUB(OP)                                                                                                       \
  LogicalResult OP::verify() { return success(); }                                                                     \
  StringRef OP::getOptimizerName() { return getOperationName().drop_front(3); }                                        \
  SmallVector<StringRef> OP::getSlotNames() { return {}; }                                                             \
  SmallVector<Value> OP::buildScalars(OpBuilder &, Value, Value) { llvm::report_fatal_error("not here"); }             \
  SmallVector<Value> OP::buildUpdate(OpBuilder &, ValueRange, Value, Value, ValueRange) {                              \
    llvm::report_fatal_error("not here");                                                                              \
  }
STUB(SgdOp) STUB(AdamOp) STUB(AdamWOp) STUB(RmspropOp) STUB(LionOp)
