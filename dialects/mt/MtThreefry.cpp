// SPDX-License-Identifier: Apache-2.0
//
// mt.threefry. `threefry` of Random.h is the same in plain C++.
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Random.h"
#include "dialects/mt/Types.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mt;

int64_t ThreefryOp::getFlops() { return 60 * elementsPerRow(getType()); }
SmallVector<utils::IteratorType> ThreefryOp::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
SmallVector<shard::ReductionKind> ThreefryOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> ThreefryOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }

LogicalResult ThreefryOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  auto shape =
      broadcastShapes(location, tensorOf(adaptor.getKey0()).getShape(), tensorOf(adaptor.getKey1()).getShape());
  if (succeeded(shape))
    shape = broadcastShapes(location, *shape, tensorOf(adaptor.getCount()).getShape());
  if (failed(shape))
    return failure();
  for (Value operand : adaptor.getOperands())
    if (!tensorOf(operand).getElementType().isInteger(32))
      return emitOptionalError(location, "expected operands of i32, found ", operand.getType());
  bool uniform = adaptor.getKind() == ThreefryResult::uniform;
  Type element = uniform ? Type(Float32Type::get(context)) : IntegerType::get(context, 32);
  types.push_back(RankedTensorType::get(*shape, element));
  return success();
}

namespace {

// Arithmetic of words, on scalars or vectors.
struct Words {
  OpBuilder &builder;
  Location location;
  Type type; // of a word

  Value constant(uint32_t word) {
    TypedAttr value = builder.getI32IntegerAttr(static_cast<int32_t>(word));
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    return arith::ConstantOp::create(builder, location, value);
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, location, a, b); }
  Value exclusiveOr(Value a, Value b) { return arith::XOrIOp::create(builder, location, a, b); }
  Value shiftRight(Value a, uint32_t bits) { return arith::ShRUIOp::create(builder, location, a, constant(bits)); }
  Value rotate(Value a, uint32_t bits) {
    Value low = arith::ShLIOp::create(builder, location, a, constant(bits));
    return arith::OrIOp::create(builder, location, low, shiftRight(a, 32 - bits));
  }
};

} // namespace

Value ThreefryOp::lowerElement(OpBuilder &builder, ValueRange operands) {
  Words words{builder, getLoc(), operands[2].getType()};
  constexpr uint32_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  Value third = words.exclusiveOr(words.exclusiveOr(operands[0], operands[1]), words.constant(0x1BD11BDA));
  Value keys[3] = {operands[0], operands[1], third};
  Value a = keys[0], b = words.add(operands[2], keys[1]);
  for (uint32_t i = 0; i < 5; ++i) {
    for (uint32_t rotation : rotations[i % 2]) {
      a = words.add(a, b);
      b = words.exclusiveOr(words.rotate(b, rotation), a);
    }
    a = words.add(a, keys[(i + 1) % 3]);
    b = words.add(b, words.add(keys[(i + 2) % 3], words.constant(i + 1)));
  }
  switch (getKind()) {
  case ThreefryResult::first:
    return a;
  case ThreefryResult::second:
    return b;
  case ThreefryResult::both:
    return words.exclusiveOr(a, b);
  case ThreefryResult::uniform:
    break;
  }
  Type f32 = builder.getF32Type();
  TypedAttr unit = builder.getF32FloatAttr(0x1p-23f);
  if (auto vector = dyn_cast<VectorType>(words.type)) {
    f32 = vector.clone(f32);
    unit = DenseElementsAttr::get(cast<VectorType>(f32), unit);
  }
  Value top = words.shiftRight(words.exclusiveOr(a, b), 9);
  Value number = arith::SIToFPOp::create(builder, getLoc(), f32, top);
  return arith::MulFOp::create(builder, getLoc(), number, arith::ConstantOp::create(builder, getLoc(), unit));
}

LogicalResult ThreefryOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                    SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(cast<RankedTensorType>(getType()), context.rows));
  int64_t i = 0;
  for (Index index(result.shape); !index.done(); index.next()) {
    auto word = [&](int operand) {
      const Tensor &values = operands[operand];
      return static_cast<uint32_t>(static_cast<int64_t>(values.data[index.offsetIn(values.shape)]));
    };
    auto [first, second] = threefry({0, word(2)}, {word(0), word(1)});
    auto whole = [](uint32_t word) { return static_cast<double>(static_cast<int32_t>(word)); };
    double values[] = {whole(first), whole(second), whole(first ^ second), ((first ^ second) >> 9) * 0x1p-23};
    result.data[i++] = values[static_cast<int>(getKind())];
  }
  results.push_back(std::move(result));
  return success();
}
