// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/Call.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc::stablehlo {

Call::Call(logical::Ops &ops, Operation &op, std::vector<Operand> operands)
    : ops(ops), op(op), operands(std::move(operands)) {}

Known::Type knownTypeOf(Type element) {
  if (element.isInteger(1))
    return Known::Type::Boolean;
  if (isa<FloatType>(element))
    return Known::Type::Float;
  if (isa<IntegerType>(element))
    return Known::Type::Integer;
  throw Refused("elements of another type than floats, integers and booleans");
}

static const Operand &expectOperand(const Call &call, size_t index) {
  if (index >= call.operands.size() || !call.operands[index].isThere())
    throw Refused("expected an operand " + std::to_string(index) + ", found none");
  if (!call.operands[index].means.empty())
    throw Refused("a computation with a mean over the samples; sums of means and their multiples are supported");
  return call.operands[index];
}

logical::Value Call::value(size_t index) {
  const Operand &operand = expectOperand(*this, index);
  return operand.known ? operand.known->lift(ops) : operand.value;
}

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

SmallVector<int64_t> listIn(StringRef text, StringRef key) {
  SmallVector<int64_t> numbers;
  size_t at = text.find((key + " = [").str());
  // "offset_dims" is the end of no other key, but "start_index_map" could be.
  if (at == StringRef::npos || (at > 0 && (llvm::isAlpha(text[at - 1]) || text[at - 1] == '_')))
    return numbers;
  StringRef rest = text.substr(at + key.size() + 4);
  SmallVector<StringRef> parts;
  rest.take_until([](char c) { return c == ']'; }).split(parts, ',', -1, false);
  for (StringRef part : parts) {
    int64_t number;
    if (part.trim().getAsInteger(10, number))
      throw Refused("expected numbers in " + key.str());
    numbers.push_back(number);
  }
  return numbers;
}

std::optional<int64_t> numberIn(StringRef text, StringRef key) {
  size_t at = text.find((key + " = ").str());
  int64_t number;
  if (at == StringRef::npos || text.substr(at + key.size() + 3).take_while(llvm::isDigit).getAsInteger(10, number))
    return std::nullopt;
  return number;
}

BuildOp findOp(StringRef name) {
  static constexpr llvm::ArrayRef<OpEntry> (*families[])() = {elementwiseOps, shapeOps, reductionOps, productOps};
  if (!name.consume_front("stablehlo.") && !name.consume_front("chlo."))
    return nullptr;
  for (auto family : families)
    for (const OpEntry &entry : family())
      if (name == entry.name)
        return entry.build;
  return nullptr;
}

} // namespace mtc::stablehlo
