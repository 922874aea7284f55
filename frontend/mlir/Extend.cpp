// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/Extend.h"

#include "dialects/graph/GraphDialect.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace mtc {

static DenseElementsAttr extendElements(DenseElementsAttr elements, ShapedType type) {
  if (elements.isSplat())
    return DenseElementsAttr::get(type, mt::decimalOf(elements.getSplatValue<APFloat>()));
  SmallVector<double> made;
  made.reserve(static_cast<size_t>(elements.getNumElements()));
  for (float element : elements.getValues<float>())
    made.push_back(element);
  return DenseElementsAttr::get(type, ArrayRef<double>(made));
}

LogicalResult extend(ModuleOp module) {
  auto found = module.walk([](mt::ThreefryOp op) {
    if (op.getKind() != mt::ThreefryResult::uniform)
      return WalkResult::advance();
    op.emitError() << "expected no uniform random numbers of Threefry in float64, found some: draw them in float32 "
                      "outside of the step";
    return WalkResult::interrupt();
  });
  if (found.wasInterrupted())
    return failure();
  Type f64 = Float64Type::get(module.getContext());
  AttrTypeReplacer replacer;
  replacer.addReplacement([=](Float32Type) -> Type { return f64; });
  replacer.addReplacement([=](FloatAttr number) -> std::optional<std::pair<Attribute, WalkResult>> {
    if (!number.getType().isF32())
      return std::nullopt;
    return std::pair<Attribute, WalkResult>(FloatAttr::get(f64, mt::decimalOf(number.getValue())), WalkResult::skip());
  });
  // Arrays keep their type, which is that of the attribute; the op that has one of f32 takes it as decimals.
  replacer.addReplacement(
      [](DenseArrayAttr array) { return std::pair<Attribute, WalkResult>(array, WalkResult::skip()); });
  replacer.addReplacement([=](DenseElementsAttr elements) -> std::optional<std::pair<Attribute, WalkResult>> {
    if (!elements.getElementType().isF32())
      return std::nullopt;
    return std::pair<Attribute, WalkResult>(extendElements(elements, elements.getType().clone(f64)),
                                            WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  module.walk([](mt::CastOp cast) {
    if (cast.getOperand().getType() != cast.getType())
      return;
    cast.getResult().replaceAllUsesWith(cast.getOperand());
    cast.erase();
  });
  mt::Compilation(module).setPrecision("f64");
  return success();
}

LogicalResult refuseDoubles(ModuleOp module) {
  auto found = module.walk([](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      auto value = dyn_cast<graph::ValueType>(type);
      Type element = tensor ? tensor.getElementType() : value ? value.getElement() : Type();
      if (!element || !element.isF64())
        continue;
      op->emitError() << "expected values of f32, found one of f64: compile with --precision f64";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(found.wasInterrupted());
}

} // namespace mtc
