// SPDX-License-Identifier: Apache-2.0
//
// Philox 4x32-10 on vectors. mt.random_uniform defines the bits of each element.
#include "dialects/mt/Random.h"
#include "compiler/codegen/common/Kernel.h"

using namespace mlir;
using namespace mtc;

namespace {
struct Philox {
  Emitter &emit;
  bool scalar;

  Type shaped(Type element) { return scalar ? element : emit.vectorOf(element); }
  Type words() { return shaped(emit.getI32Type()); }
  Type longs() { return shaped(emit.getI64Type()); }
  Value splat(Value value) { return scalar ? value : emit.splat(value); }
  Value constant(TypedAttr value) {
    return scalar ? Value(arith::ConstantOp::create(emit, value)) : emit.splatConstant(value);
  }
  Value constant(uint32_t value) { return constant(emit.getI32IntegerAttr(static_cast<int32_t>(value))); }
  Value wide(uint64_t value) { return constant(emit.getI64IntegerAttr(static_cast<int64_t>(value))); }
  Value exclusiveOr(Value a, Value b) { return arith::XOrIOp::create(emit, a, b); }
  Value truncate(Value wide) { return arith::TruncIOp::create(emit, words(), wide); }
  Value high(Value wide) { return truncate(arith::ShRUIOp::create(emit, wide, this->wide(32))); }
  // The 64-bit product of a word and a constant.
  Value product(Value word, uint32_t factor) {
    Value wide = arith::ExtUIOp::create(emit, longs(), word);
    return emit.mul(wide, this->wide(factor));
  }

  void rounds(Value (&counter)[4], Value keyLow, Value keyHigh) {
    for (int round = 0; round < 10; ++round) {
      if (round > 0) {
        keyLow = emit.add(keyLow, constant(0x9E3779B9));
        keyHigh = emit.add(keyHigh, constant(0xBB67AE85));
      }
      Value first = product(counter[0], 0xD2511F53), second = product(counter[2], 0xCD9E8D57);
      Value next0 = exclusiveOr(exclusiveOr(high(second), counter[1]), keyLow);
      Value next2 = exclusiveOr(exclusiveOr(high(first), counter[3]), keyHigh);
      counter[0] = next0;
      counter[1] = truncate(second);
      counter[2] = next2;
      counter[3] = truncate(first);
    }
  }
};
} // namespace

// The word of `stream` and `step` at each element, as a number in [0, 1). `element` and `seed` are i64, `step` and
// `stream` i32. The elements of the vector are at a distance of `stride`.
static Value uniformOf(Emitter &emit, bool scalar, Value seed, Value step, Value stream, Value element,
                       int64_t stride = 1) {
  Philox philox{emit, scalar};
  Value elements = element;
  if (!scalar) {
    Value offsets = arith::ExtUIOp::create(emit, philox.longs(), emit.laneNumbers());
    if (stride != 1)
      offsets = emit.mul(offsets, philox.wide(static_cast<uint64_t>(stride)));
    elements = emit.add(emit.splat(element), offsets);
  }
  Value index = arith::ShRUIOp::create(emit, elements, philox.wide(2));
  seed = philox.splat(seed);
  Value counter[4] = {philox.truncate(index), philox.high(index), step ? philox.splat(step) : philox.constant(0),
                      philox.splat(stream)};
  philox.rounds(counter, philox.truncate(seed), philox.high(seed));
  Value choice = arith::AndIOp::create(emit, philox.truncate(elements), philox.constant(3));
  Value word = counter[0];
  for (uint32_t i = 1; i < 4; ++i)
    word = arith::SelectOp::create(
        emit, arith::CmpIOp::create(emit, arith::CmpIPredicate::eq, choice, philox.constant(i)), counter[i], word);
  Value top = arith::ShRUIOp::create(emit, word, philox.constant(8));
  Value number = arith::SIToFPOp::create(emit, philox.shaped(emit.realType()), top);
  return arith::MulFOp::create(emit, number, philox.constant(emit.realAttr(0x1p-24f)));
}

// The function (seed, stream, element) for initial values: there are many of them, and each is computed once.
static LLVM::LLVMFuncOp uniformFunction(Emitter &emit, bool scalar) {
  StringRef name = scalar ? "mt_uniform_scalar" : "mt_uniform";
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type i64 = emit.getI64Type(), number = Philox{emit, scalar}.shaped(emit.realType());
  auto function = emit.function(name, {i64, emit.getI32Type(), i64}, number, [&](ValueRange arguments) {
    return uniformOf(emit, scalar, arguments[0], Value(), arguments[1], arguments[2]);
  });
  function.setNoInline(true);
  return function;
}

Value mtc::emitHash(Emitter &emit, StringRef stream) {
  return arith::ConstantOp::create(emit, emit.getI32IntegerAttr(static_cast<int32_t>(mt::hashStream(stream))));
}

Value mtc::emitUniform(Kernel &kernel, mt::RandomUniformOp op, Value element, llvm::function_ref<Value(Value)> scalarOf,
                       bool scalar) {
  Emitter &emit = kernel.emit;
  Value hash = op.getHash() ? scalarOf(op.getHash()) : emitHash(emit, *op.getStream());
  if (op.getStep())
    return uniformOf(emit, scalar, kernel.seed(), scalarOf(op.getStep()), hash, element);
  LLVM::LLVMFuncOp function = uniformFunction(emit, scalar);
  return LLVM::CallOp::create(emit, function, ValueRange{kernel.seed(), hash, element}).getResult();
}

Value mtc::emitUniform(Kernel &kernel, Value hash, Value element, int64_t stride, Value step) {
  return uniformOf(kernel.emit, /*scalar=*/false, kernel.seed(), step, hash, element, stride);
}

Value mtc::emitUniform(Kernel &kernel, Value hash, Value element, Value step) {
  return uniformOf(kernel.emit, /*scalar=*/true, kernel.seed(), step, hash, element);
}
