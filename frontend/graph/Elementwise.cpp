// SPDX-License-Identifier: Apache-2.0
//
// Ops of `mt` that an op of `graph` names.
#include "frontend/graph/Lower.h"
#include "frontend/logical/Functions.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace mtc::lower {
namespace {

// Element by element, but without ElementwiseOpInterface.
constexpr llvm::StringLiteral sameTypes[] = {"while_training"}; // operands do not broadcast
constexpr llvm::StringLiteral noises[] = {"dropout", "gaussian_noise", "gaussian_dropout"};
constexpr llvm::StringLiteral others[] = {"stop_gradient"};

void checkElementwise(Call &call, StringRef name) {
  std::optional<RegisteredOperationName> found =
      RegisteredOperationName::lookup(("mt." + name).str(), call.op.getContext());
  bool fits = found && (found->hasInterface<mt::ElementwiseOpInterface>() || llvm::is_contained(sameTypes, name) ||
                        llvm::is_contained(noises, name) || llvm::is_contained(others, name));
  if (!fits)
    throw Refused("expected a function or an op of mt that works element by element, found \"" + name.str() + "\"");
}

bool isRepeated(const Value &value) {
  return llvm::any_of(value.flat(), [](const logical::Axis &part) { return !part.isStored() && !part.size.isOne(); });
}

Value lowerElementwise(Call &call, graph::ElementwiseOp op) {
  std::string name = op.getName().str();
  if (const logical::Function *function = logical::findFunction(name)) {
    if (call.operands.size() != function->operands || !op->getDiscardableAttrs().empty())
      throw Refused("expected " + std::to_string(function->operands) + " operands of " + name + " and no attributes");
    return function->formula(call.ops, call.operands);
  }
  checkElementwise(call, name);
  if (call.operands.empty())
    throw Refused("expected operands of " + name + ", found none");
  Type element = call.type().getElement();
  if (call.operands.size() == 1) {
    Value value = call.operands[0];
    if (llvm::is_contained(noises, name) && isRepeated(value)) // each element has a random number of its own
      value = logical::canonical(call.ops, value);
    return {makeNamed(call, name, value.type().clone(element), value.stored), value.axes};
  }
  logical::Aligned aligned =
      logical::alignStored(call.ops, call.operands, element, name, llvm::is_contained(sameTypes, name));
  return aligned.result(makeNamed(call, name, aligned.type, aligned.stored));
}

Value lowerRound(Call &call, graph::RoundOp op) {
  Type shorter = op.getTo();
  const Value &value = call.operands[0];
  if (!isa<BFloat16Type, Float16Type>(shorter) || !value.type().getElementType().isF32())
    throw Refused("expected numbers of f32 that are rounded to bf16 or f16");
  return logical::rounded(call.ops, value, shorter);
}

Value lowerAlong(Call &call, graph::AlongOp op) {
  StringRef name = op.getName();
  size_t axis = logical::checkAxis(op.getDim(), call.operands[0].rank());
  if (name == "product")
    return logical::productAlong(call.ops, call.operands[0], axis);
  bool removes = name == "argmax";
  if (!removes && name != "softmax" && name != "log_softmax")
    throw Refused("expected softmax, log_softmax, argmax or product, found \"" + name.str() + "\"");
  Value value = logical::storedLast(call.ops, call.operands[0], axis);
  Type element = call.type().getElement();
  RankedTensorType type = value.type();
  Type made = removes ? RankedTensorType::get(type.getShape().drop_back(), element) : type.clone(element);
  Value result{makeNamed(call, name, made, value.stored), value.axes};
  if (removes)
    result.axes.erase(result.axes.begin() + static_cast<int64_t>(axis));
  return call.ops.tidy(result);
}

} // namespace

mlir::Value makeNamed(Call &call, StringRef name, Type type, ValueRange operands) {
  OperationState state(call.ops.location, ("mt." + name).str(), operands, type);
  NamedAttrList attributes(call.op.getDiscardableAttrDictionary());
  RegisteredOperationName known = *state.name.getRegisteredInfo();
  for (NamedAttribute attribute : attributes)
    if (!llvm::is_contained(known.getAttributeNames(), attribute.getName()))
      throw Refused("expected attributes of mt." + name.str() + ", found " + attribute.getName().str());
  if (failed(known.verifyInherentAttrs(attributes, [&] { return call.op.emitError(); })))
    throw Reported();
  state.attributes = attributes;
  Operation *made = call.ops.builder.create(state);
  if (succeeded(verify(made, /*verifyRecursively=*/false))) // what is built on it may ask what it is
    return made->getResult(0);
  made->erase();
  throw Reported();
}

llvm::ArrayRef<Entry> elementwiseOps() {
  static constexpr Entry entries[] = {entry<graph::ElementwiseOp, lowerElementwise>(),
                                      entry<graph::RoundOp, lowerRound>(), entry<graph::AlongOp, lowerAlong>()};
  return entries;
}

} // namespace mtc::lower
