// SPDX-License-Identifier: Apache-2.0
//
// Convolutions within a sample, whose feature maps stay in the L2 cache.
#include "compiler/codegen/cpu/Conv.h"
#include "compiler/codegen/cpu/Rows.h"

using namespace mlir;
using namespace mtc;

RowEmitter::RowEmitter(Kernel &kernel) : kernel(kernel), emit(kernel.emit) {}
RowEmitter::~RowEmitter() = default;

LogicalResult RowEmitter::prepare(ArrayRef<Operation *> operations) {
  for (Operation *op : operations)
    if (isa<mt::Conv2DOp>(op)) {
      auto &convolution = convolutions[op];
      convolution = std::make_unique<ConvEmitter>(kernel, op, productOf(op), /*transposed=*/false);
      if (failed(convolution->prepare([&](Value value) { return pointerOf(value); })))
        return failure();
    }
  return success();
}

LogicalResult RowEmitter::runConvolution(const RowStatement &statement) {
  SmallVector<Value> wanted;
  for (Operation *op : statement.operations)
    if (pointers.lookup(op->getResult(0)))
      wanted.push_back(op->getResult(0));
  return convolutions[statement.operations.front()]->runSample([&](Value value) { return pointerOf(value); }, wanted);
}
