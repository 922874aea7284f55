// SPDX-License-Identifier: Apache-2.0
//
// Operators on tensors such as x + y and x * 2.0, which a saved model has as layers of the module keras.src.ops.
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {

template <typename Op> static Value buildBinary(LayerBuilder &layer) {
  llvm::ArrayRef<Operand> arguments = layer.arguments();
  if (arguments.size() != 2)
    return layer.fail("expected 2 operands, found " + std::to_string(arguments.size()));
  Value a = layer.toFloat(arguments[0]), b = layer.toFloat(arguments[1]);
  return layer.binary<Op>(a, b);
}

template <typename Op> static Value buildUnary(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  return x ? Op::create(layer.builder, layer.location, x.getType(), x).getResult() : x;
}

llvm::ArrayRef<LayerEntry> operatorLayers() {
  static constexpr LayerEntry entries[] = {
      {"Add", buildBinary<mt::AddOp>},
      {"Subtract", buildBinary<mt::SubOp>},
      {"Multiply", buildBinary<mt::MulOp>},
      {"Divide", buildBinary<mt::DivOp>},
      {"TrueDivide", buildBinary<mt::DivOp>},
      {"Maximum", buildBinary<mt::MaximumOp>},
      {"Minimum", buildBinary<mt::MinimumOp>},
      {"Negative", buildUnary<mt::NegOp>},
      {"Absolute", buildUnary<mt::AbsOp>},
      {"Square", buildUnary<mt::SquareOp>},
      {"Exp", buildUnary<mt::ExpOp>},
      {"Sqrt", buildUnary<mt::SqrtOp>},
      {"Tanh", buildUnary<mt::TanhOp>},
      {"Sigmoid", buildUnary<mt::SigmoidOp>},
      {"Relu", buildUnary<mt::ReluOp>},
      {"Relu6", buildUnary<mt::Relu6Op>},
      {"Silu", buildUnary<mt::SiluOp>},
      {"Softplus", buildUnary<mt::SoftplusOp>},
      {"HardSigmoid", buildUnary<mt::HardSigmoidOp>},
      {"HardSilu", buildUnary<mt::HardSiluOp>},
      {"Log", buildUnary<mt::LogOp>},
      {"Log1p", buildUnary<mt::Log1pOp>},
      {"Expm1", buildUnary<mt::Expm1Op>},
      {"Rsqrt", buildUnary<mt::RsqrtOp>},
      {"Sin", buildUnary<mt::SinOp>},
      {"Cos", buildUnary<mt::CosOp>},
      {"Erf", buildUnary<mt::ErfOp>},
      {"Floor", buildUnary<mt::FloorOp>},
      {"Sign", buildUnary<mt::SignOp>},
      {"Selu", buildUnary<mt::SeluOp>},
      {"Softsign", buildUnary<mt::SoftsignOp>},
  };
  return entries;
}

} // namespace mtc::keras
