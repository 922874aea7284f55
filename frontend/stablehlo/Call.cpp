// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/Call.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace mtc::stablehlo {

Call::Call(logical::Ops &ops, Operation &op, std::vector<Operand> operands)
    : ops(ops), op(op), operands(std::move(operands)) {}

Known::Type knownTypeOf(Type element) {
  if (element.isInteger(1))
    return Known::Type::Boolean;
  if (isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(element))
    return Known::Type::Float;
  constexpr unsigned most = 64;
  if (auto integer = dyn_cast<IntegerType>(element); integer && integer.getWidth() > 0 && integer.getWidth() <= most)
    return Known::Type::Integer;
  std::string text;
  llvm::raw_string_ostream(text) << element;
  throw Refused("elements of " + text + "; f64, f32, f16, bf16, integers of at most 64 bits and booleans are read");
}

int widthOf(Type element) {
  auto integer = cast<IntegerType>(element);
  auto bits = static_cast<int>(integer.getWidth());
  return integer.isUnsigned() ? -bits : bits;
}

static bool isOneOf(Operation &op, std::initializer_list<StringRef> names) {
  return llvm::is_contained(names, op.getName().stripDialect());
}

// What an op computes with elements of few bits.
static logical::Value asStored(Call &call, const logical::Value &value, Type element) {
  constexpr int bits = 32; // of what is computed with
  if (element.isF16() || element.isBF16()) {
    bool moves = isOneOf(call.op, {"constant",
                                   "broadcast_in_dim",
                                   "dynamic_broadcast_in_dim",
                                   "reshape",
                                   "gather",
                                   "dynamic_reshape",
                                   "transpose",
                                   "concatenate",
                                   "slice",
                                   "real_dynamic_slice",
                                   "dynamic_slice",
                                   "dynamic_update_slice",
                                   "pad",
                                   "dynamic_gather",
                                   "reverse",
                                   "select",
                                   "optimization_barrier",
                                   "maximum",
                                   "minimum",
                                   "custom_call",
                                   "abs",
                                   "negate",
                                   "sign"});
    return moves ? value : logical::rounded(call.ops, value, element);
  }
  bool computes = isOneOf(call.op, {"add", "subtract", "multiply", "negate", "abs", "power", "reduce", "dot_general",
                                    "reduce_window", "convolution"});
  if (!computes || !value.isInteger())
    return value;
  int width = widthOf(element);
  if (width <= -bits && isOneOf(call.op, {"subtract", "negate"}))
    throw Refused("a difference of whole numbers without a sign, which is computed in 32 bits with a sign");
  return std::abs(width) < bits ? logical::wrapped(call.ops, value, width) : value;
}

void Call::settle() {
  for (auto [index, operand] : llvm::enumerate(llvm::MutableArrayRef(results).take_front(op.getNumResults()))) {
    Type type = op.getResult(index).getType();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      throw Refused("expected results that are tensors");
    if (!operand.known && !operand.value)
      continue;
    logical::Shape shape = operand.known ? logical::Shape(operand.known->shape.begin(), operand.known->shape.end())
                                         : operand.value.shape();
    Type element = tensor.getElementType();
    Known::Type kind = knownTypeOf(element);
    bool same =
        operand.known ? operand.known->type == kind : operand.value.element() == logical::elementOf(ops.builder, kind);
    same &= shape.size() == static_cast<size_t>(tensor.getRank());
    if (batches)
      same &= shape == batches->shapeOf(op.getResult(index));
    for (size_t i = 0; same && !batches && i < shape.size(); ++i)
      same = tensor.isDynamicDim(i) || (!shape[i].batch && shape[i].times == tensor.getDimSize(i));
    if (!same) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      throw Refused("expected a result of " + logical::describe(shape) + ", found " + text);
    }
    if (operand.value) {
      operand.value = asStored(*this, operand.value, element);
    } else if (kind == Known::Type::Integer) {
      auto known = std::make_shared<Known>(*operand.known);
      known->width = widthOf(element);
      known->round();
      operand.known = known;
    } else if (element.isF16() || element.isBF16()) {
      auto known = std::make_shared<Known>(*operand.known);
      for (double &number : known->numbers) {
        llvm::APFloat value(number);
        bool loses;
        value.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
        number = value.convertToDouble();
      }
      operand.known = known;
    }
  }
}

static const Operand &expectOperand(const Call &call, size_t index) {
  if (index >= call.operands.size() || !call.operands[index].isThere())
    throw Refused("expected an operand " + std::to_string(index) + ", found none");
  if (!call.operands[index].means.empty())
    throw Refused("a computation with a mean over the samples; sums of means and their multiples are supported");
  return call.operands[index];
}

logical::Value Call::value(size_t index) { return expectOperand(*this, index).lift(ops); }

const Known *Call::known(size_t index) const { return index < operands.size() ? operands[index].known.get() : nullptr; }

const Known &Call::expectKnown(size_t index, const char *what) const {
  if (const Known *operand = known(index))
    return *operand;
  throw Refused(std::string("expected ") + what + " that the file says, found one that is computed from the data");
}

logical::Shape Call::shape(size_t index) const {
  const Operand &operand = expectOperand(*this, index);
  return operand.known ? logical::Shape(operand.known->shape.begin(), operand.known->shape.end())
                       : operand.value.shape();
}

RankedTensorType Call::resultType() const {
  auto type = op.getNumResults() == 1 ? dyn_cast<RankedTensorType>(op.getResult(0).getType()) : RankedTensorType();
  if (!type)
    throw Refused("expected one result that is a tensor");
  return type;
}

SmallVector<int64_t> Call::resultSizes() const {
  if (hasOpenResult())
    throw Refused("expected a result of known sizes, found one of any size");
  return SmallVector<int64_t>(resultType().getShape());
}

logical::Shape Call::resultShape() const {
  SmallVector<int64_t> sizes = resultSizes();
  return batches ? batches->shapeOf(op.getResult(0)) : logical::Shape(sizes.begin(), sizes.end());
}

logical::Shape Call::partSizes(size_t index, ArrayRef<int64_t> sizes) const {
  logical::Shape parts(sizes.begin(), sizes.end()), all = shape(index);
  auto type = dyn_cast<RankedTensorType>(op.getOperand(index).getType());
  if (!type || type.getRank() != std::ssize(all))
    throw Refused("expected an operand of the type of its value");
  for (size_t i = 0; batches && i < std::min(parts.size(), all.size()); ++i)
    if (all[i].batch && sizes[i] != 1) {
      if (sizes[i] != type.getDimSize(static_cast<unsigned>(i)))
        throw Refused("a part of the samples of a batch");
      parts[i] = all[i];
    }
  return parts;
}

Attribute Call::attribute(StringRef name) const { return op.getAttr(name); }

SmallVector<int64_t> Call::integers(StringRef name, size_t count, int64_t otherwise) const {
  Attribute found = attribute(name);
  if (!found)
    return SmallVector<int64_t>(count, otherwise);
  SmallVector<int64_t> numbers;
  if (auto list = dyn_cast<DenseI64ArrayAttr>(found))
    numbers.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  else if (auto elements = dyn_cast<DenseIntElementsAttr>(found);
           elements && elements.getElementType().isInteger(64) && elements.getNumElements() <= 1024)
    numbers.assign(elements.getValues<int64_t>().begin(), elements.getValues<int64_t>().end());
  else
    throw Refused("expected " + name.str() + " to be integers");
  if (count && numbers.size() != count)
    throw Refused("expected " + std::to_string(count) + " numbers in " + name.str() + ", found " +
                  std::to_string(numbers.size()));
  return numbers;
}

int64_t Call::integer(StringRef name, int64_t otherwise) const {
  auto found = dyn_cast_or_null<IntegerAttr>(attribute(name));
  return found ? found.getInt() : otherwise;
}

std::string Call::text(StringRef name) const {
  auto found = dyn_cast_or_null<OpaqueAttr>(attribute(name));
  return found ? found.getAttrData().str() : std::string();
}

StringRef Call::reducer() const {
  if (op.getNumRegions() != 1 || !op.getRegion(0).hasOneBlock())
    return "";
  Block &body = op.getRegion(0).front();
  if (body.getOperations().size() != 2 || body.getNumArguments() != 2)
    return "";
  Operation &first = body.front(), &last = body.back();
  bool plain = first.getNumOperands() == 2 && first.getOperand(0) != first.getOperand(1) &&
               llvm::all_of(first.getOperands(), [&](mlir::Value v) { return v.getParentBlock() == &body; }) &&
               last.getNumOperands() == 1 && first.getNumResults() == 1 && last.getOperand(0) == first.getResult(0);
  return plain ? first.getName().getStringRef() : "";
}

const OpEntry *findOp(StringRef name) {
  static constexpr llvm::ArrayRef<OpEntry> (*families[])() = {
      elementwiseOps, functionOps, shapeOps, updateOps, reductionOps,     gatherOps,
      productOps,     scatterOps,  bitOps,   linearOps, normalizationOps, sortingOps};
  if (!name.consume_front("stablehlo.") && !name.consume_front("chlo.") && !name.consume_front("mhlo."))
    return nullptr;
  for (auto family : families)
    for (const OpEntry &entry : family())
      if (name == entry.name)
        return &entry;
  return nullptr;
}

} // namespace mtc::stablehlo
