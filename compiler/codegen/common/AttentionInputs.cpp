// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/AttentionInputs.h"

using namespace mlir;
using namespace mtc;

AttentionInputs::AttentionInputs(Emitter &emit, Operation *op, llvm::function_ref<Value(Value)> bufferOf) {
  auto readMask = [&](auto of) {
    if (of && of.getMask())
      mask = bufferOf(of.getMask());
  };
  auto readDropout = [&](auto of) {
    readMask(of);
    if (!of || !of.getStep())
      return;
    step = emit.load(emit.getI32Type(), bufferOf(of.getStep()));
    hash = of.getHash() ? emit.load(emit.getI32Type(), bufferOf(of.getHash())) : emitHash(emit, *of.getStream());
    rate = of.getRate()->convertToFloat();
  };
  readMask(dyn_cast<mt::AttentionLogSumsOp>(op));
  readDropout(dyn_cast<mt::AttentionOp>(op));
  readDropout(dyn_cast<mt::AttentionGradientOp>(op));
}

AttentionHead AttentionInputs::headOf(Kernel &kernel, const mt::Attention &form, Value sample, Value group, Value head,
                                      Value keyHead) const {
  Emitter &emit = kernel.emit;
  Value part = mask;
  if (part) {
    mt::Attention::MaskSteps steps = form.maskSteps();
    Value offset = emit.mul(sample, steps.sample);
    offset = emit.add(emit.add(offset, emit.mul(group, steps.group)), emit.mul(head, steps.head));
    part = emit.address(part, emit.getI1Type(), offset);
  }
  Value drawn;
  if (step) {
    Value index = emit.add(emit.mul(emit.add(kernel.firstRow(), sample), form.groups), group);
    drawn = emit.add(emit.mul(index, form.heads), head);
  }
  return {emit.add(emit.mul(sample, form.groups), group), head, keyHead, part, drawn};
}

std::pair<mt::AttentionOp, mt::AttentionLogSumsOp> mtc::attentionOf(Block &body) {
  mt::AttentionOp attention;
  mt::AttentionLogSumsOp logSums;
  for (Operation &op : body.without_terminator()) {
    if (auto found = dyn_cast<mt::AttentionOp>(op))
      attention = found;
    if (auto found = dyn_cast<mt::AttentionLogSumsOp>(op))
      logSums = found;
  }
  return {attention, logSums};
}
