// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/Call.h"

#include <cmath>

using namespace mlir;

namespace mtc::onnx {

using Kind = Attribute::Kind;

// The operand, which must be one value.
static const Operand &expectOne(const Call &call, size_t index) {
  if (!call.has(index) || call.inputs[index].sequence)
    throw Refused("expected a value as operand " + std::to_string(index) + ", found " +
                  (call.has(index) ? "a list" : "none"));
  if (!call.inputs[index].known && !call.inputs[index].value)
    throw Refused("a value that depends on the place of a sample in the batch");
  return call.inputs[index];
}

logical::Value Call::value(size_t index) {
  const Operand &operand = expectOne(*this, index);
  return operand.lift(ops);
}

logical::Value Call::floats(size_t index) { return logical::cast(ops, value(index), ops.real()); }

bool Call::allKnown() const {
  return !inputs.empty() &&
         llvm::all_of(inputs, [](const Operand &operand) { return operand.known || !operand.isThere(); }) && has(0);
}

const Known &Call::expectKnown(size_t index, const char *what) const {
  if (const Known *operand = known(index))
    return *operand;
  throw Refused(std::string("expected ") + what + " that the file says, found one that is computed from the data");
}

double Call::expectNumber(size_t index, const char *what) const {
  const Known &known = expectKnown(index, what);
  if (known.count() != 1 || known.hasBatch())
    throw Refused(std::string("expected one number as ") + what + ", found " + std::to_string(known.count()) +
                  (known.hasBatch() ? ", which the batch decides" : ""));
  return known.numbers[0];
}

int64_t Call::expectInteger(size_t index, const char *what) const {
  double number = expectNumber(index, what);
  constexpr double most = 0x1p53;
  if (!(std::fabs(number) < most) || number != std::trunc(number))
    throw Refused(std::string("expected a whole number as ") + what + ", found " + std::to_string(number));
  return static_cast<int64_t>(number);
}

logical::Shape Call::shape(size_t index) const {
  const Operand &operand = expectOne(*this, index);
  return operand.known ? logical::Shape(operand.known->shape.begin(), operand.known->shape.end())
                       : operand.value.shape();
}

size_t Call::axisOf(int64_t axis, size_t rank) {
  auto size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size)
    throw Refused("expected an axis of " + std::to_string(rank) + ", found " + std::to_string(axis));
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

llvm::SmallVector<int64_t> Call::axesOf(llvm::ArrayRef<int64_t> requested, size_t rank) {
  llvm::SmallVector<int64_t> axes;
  for (int64_t axis : requested)
    axes.push_back(static_cast<int64_t>(axisOf(axis, rank)));
  llvm::sort(axes);
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    throw Refused("expected different axes, found one twice");
  return axes;
}

static std::string kindName(Kind kind) {
  switch (kind) {
  case Kind::Float:
    return "a number";
  case Kind::Integer:
    return "an integer";
  case Kind::Text:
    return "a text";
  case Kind::Tensor:
    return "a tensor";
  case Kind::Graph:
    return "a graph";
  case Kind::Floats:
    return "numbers";
  case Kind::Integers:
    return "integers";
  case Kind::Texts:
    return "texts";
  case Kind::Other:
    return "something else";
  }
  return "";
}

const Attribute *Call::attribute(const char *name) {
  read.insert(name);
  auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : &found->second;
}

static const Attribute *ofKind(const Attribute *attribute, const char *name, Kind kind) {
  if (attribute && attribute->kind != kind)
    throw Refused(std::string("expected the attribute ") + name + " to be " + kindName(kind) + ", found " +
                  kindName(attribute->kind));
  return attribute;
}

int64_t Call::integer(const char *name, int64_t otherwise) {
  const Attribute *found = ofKind(attribute(name), name, Kind::Integer);
  return found ? found->integer : otherwise;
}

double Call::number(const char *name, double otherwise) {
  const Attribute *found = ofKind(attribute(name), name, Kind::Float);
  return found ? found->number : otherwise;
}

std::string Call::text(const char *name, const char *otherwise) {
  const Attribute *found = ofKind(attribute(name), name, Kind::Text);
  return found ? found->text : otherwise;
}

SmallVector<int64_t> Call::integers(const char *name, ArrayRef<int64_t> otherwise) {
  const Attribute *found = ofKind(attribute(name), name, Kind::Integers);
  return found ? SmallVector<int64_t>(found->integers.begin(), found->integers.end()) : SmallVector<int64_t>(otherwise);
}

std::vector<std::string> Call::texts(const char *name) {
  const Attribute *found = ofKind(attribute(name), name, Kind::Texts);
  return found ? found->texts : std::vector<std::string>();
}

std::vector<double> Call::numbers(const char *name) {
  const Attribute *found = ofKind(attribute(name), name, Kind::Floats);
  return found ? found->numbers : std::vector<double>();
}

Size Call::elementsFrom(size_t axis) const {
  int64_t elements = 1;
  for (const Size &size : llvm::drop_begin(shape(0), axis)) {
    if (size.batch)
      throw Refused("an axis of the samples among those of one line");
    elements = logical::multiply(elements, size.times);
  }
  return elements;
}

std::optional<SmallVector<int64_t>> Call::operandOrAttribute(size_t index, const char *name) {
  if (has(index))
    return expectKnown(index, name).integers();
  if (hasAttribute(name))
    return integers(name);
  return std::nullopt;
}

std::string Call::unread() const {
  for (const auto &[name, value] : node.attributes)
    if (!read.count(name))
      return name;
  return {};
}

} // namespace mtc::onnx
