// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/MtDialect.h"
using namespace mlir;
using namespace mlir::mt;
#define STUB(OP)                                                                                                       \
  Value OP::decompose(OpBuilder &) { llvm::report_fatal_error("not here"); }                                           \
  LogicalResult OP::interpret(const EvalContext &, ArrayRef<Tensor>, SmallVectorImpl<Tensor> &) { return failure(); }
#define STUBG(OP)                                                                                                      \
  STUB(OP) void OP::buildGradient(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {                                 \
    llvm::report_fatal_error("not here");                                                                              \
  }
STUBG(SoftmaxOp)
STUBG(LogSoftmaxOp) STUB(OneHotOp) STUBG(SparseCategoricalCrossentropyOp) STUBG(CategoricalCrossentropyOp)
    STUBG(BinaryCrossentropyOp) STUBG(MeanSquaredErrorOp) STUBG(MeanAbsoluteErrorOp) STUB(SparseCategoricalAccuracyOp)
        STUB(CategoricalAccuracyOp) STUB(BinaryAccuracyOp)
