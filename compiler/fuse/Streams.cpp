// SPDX-License-Identifier: Apache-2.0
//
// Passes the streams of random numbers to kernels as operands.
#include "compiler/fuse/Outline.h"
#include "dialects/mt/Random.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mtc {

using namespace mlir;

// The hash of a stream as a constant outside of the kernels.
static Value hashOutside(mt::ProgramOp program, Location location, StringRef stream) {
  auto builder = OpBuilder::atBlockBegin(&program.getBody().front());
  auto type = RankedTensorType::get({}, builder.getI32Type());
  auto number = static_cast<int32_t>(mt::hashStream(stream));
  return mt::ConstantOp::create(builder, location, type, DenseElementsAttr::get(type, number));
}

namespace {
// Adds the streams of one kernel to its operands.
class KernelStreams {
public:
  KernelStreams(mt::KernelOp kernel, llvm::StringMap<Value> &hashes) : kernel(kernel), hashes(hashes) {}

  template <typename Op> void pass(Op op) {
    if (!op.getStreamAttr())
      return;
    op.getHashMutable().assign(operandOf(op.getStreamAttr()));
    op.removeStreamAttr();
  }
  // An attention without a step, outside of train_step, drops nothing and needs no stream.
  template <typename Op> void passOrRemove(Op op) {
    if (op.getStep())
      return pass(op);
    op.removeStreamAttr();
    op.removeRateAttr();
  }

private:
  Value operandOf(StringAttr stream) {
    Value &argument = arguments[stream];
    if (argument)
      return argument;
    Value &hash = hashes[stream.getValue()];
    if (!hash)
      hash = hashOutside(kernel->getParentOfType<mt::ProgramOp>(), kernel.getLoc(), stream);
    kernel->insertOperands(kernel->getNumOperands(), hash);
    argument = kernel.getBody().front().addArgument(hash.getType(), kernel.getLoc());
    return argument;
  }

  mt::KernelOp kernel;
  llvm::StringMap<Value> &hashes;
  llvm::DenseMap<StringAttr, Value> arguments;
};
} // namespace

void passStreams(mt::ProgramOp program) {
  llvm::StringMap<Value> hashes;
  for (auto kernel : program.getBody().front().getOps<mt::KernelOp>()) {
    KernelStreams streams(kernel, hashes);
    for (Operation &op : kernel.getBody().front())
      llvm::TypeSwitch<Operation *>(&op)
          .Case<mt::RandomUniformOp>([&](auto random) { streams.pass(random); })
          .Case<mt::AttentionOp, mt::AttentionGradientOp>([&](auto attention) { streams.passOrRemove(attention); });
  }
}

} // namespace mtc
