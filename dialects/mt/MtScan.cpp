// SPDX-License-Identifier: Apache-2.0
//
// mt.scan: syntax, and the types of inputs, carries and stacked outputs.
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

RankedTensorType ScanOp::partOf(RankedTensorType stacked) {
  SmallVector<int64_t> shape(stacked.getShape());
  shape.erase(shape.begin() + stepAxis(stacked));
  return stacked.clone(shape);
}

RankedTensorType ScanOp::stackOf(RankedTensorType part, int64_t steps) {
  SmallVector<int64_t> shape(part.getShape());
  shape.insert(shape.begin() + stepAxis(part), steps);
  return part.clone(shape);
}

static bool hasSteps(RankedTensorType type) { return type.getRank() > ScanOp::stepAxis(type); }

static int64_t stepsOf(TypeRange inputs, std::optional<int64_t> given) {
  if (inputs.empty())
    return given.value_or(0);
  auto first = cast<RankedTensorType>(inputs.front());
  return hasSteps(first) ? first.getDimSize(ScanOp::stepAxis(first)) : 0;
}

int64_t ScanOp::countSteps() { return stepsOf(getInputs().getTypes(), getSteps()); }

SmallVector<Type> ScanOp::resultTypes(Block &body, size_t carries, int64_t steps) {
  SmallVector<Type> types;
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    types.push_back(i < carries ? tensorOf(value) : stackOf(tensorOf(value), steps));
  return types;
}

// ---- syntax

static void printBindings(OpAsmPrinter &printer, StringRef word, ValueRange arguments, ValueRange operands) {
  if (operands.empty())
    return;
  printer << ' ' << word << '(';
  llvm::interleaveComma(llvm::zip_equal(arguments, operands), printer, [&](auto pair) {
    auto [argument, operand] = pair;
    printer << argument << " = " << operand << " : " << operand.getType();
  });
  printer << ')';
}

void ScanOp::print(OpAsmPrinter &printer) {
  ValueRange arguments = getBody().getArguments();
  printBindings(printer, "over", arguments.take_front(getInputs().size()), getInputs());
  printBindings(printer, "from", arguments.drop_front(getInputs().size()), getCarries());
  if (std::optional<int64_t> steps = getSteps())
    printer << " steps = " << *steps;
  if (getReverse())
    printer << " reverse";
  printer.printOptionalAttrDictWithKeyword(llvm::to_vector((*this)->getDiscardableAttrs()));
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

namespace {
// Parses `over(%x = %xs : tensor<...>, ...)`: arguments of the body with their operands and types.
struct Bindings {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc at;

  ParseResult parse(OpAsmParser &parser, StringRef word) {
    at = parser.getCurrentLocation();
    if (failed(parser.parseOptionalKeyword(word)))
      return success();
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
      if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
          parser.parseOperand(operands.emplace_back()))
        return failure();
      SMLoc typeLoc = parser.getCurrentLocation();
      if (parser.parseColonType(types.emplace_back()))
        return failure();
      if (!isa<RankedTensorType>(types.back()))
        return parser.emitError(typeLoc, "expected a tensor, found ") << types.back();
      return success();
    });
  }
};
} // namespace

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  Bindings inputs, carries;
  Properties &properties = result.getOrAddProperties<Properties>();
  if (inputs.parse(parser, "over") || carries.parse(parser, "from"))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("steps"))) {
    int64_t steps = 0;
    if (parser.parseEqual() || parser.parseInteger(steps))
      return failure();
    properties.steps = parser.getBuilder().getI64IntegerAttr(steps);
  }
  if (succeeded(parser.parseOptionalKeyword("reverse")))
    properties.reverse = parser.getBuilder().getUnitAttr();
  SmallVector<OpAsmParser::Argument> arguments;
  for (auto [argument, type] : llvm::zip(inputs.arguments, inputs.types)) {
    auto stacked = cast<RankedTensorType>(type);
    if (!hasSteps(stacked))
      return parser.emitError(inputs.at, "expected an input with an axis of steps, found ") << type;
    argument.type = partOf(stacked);
    arguments.push_back(argument);
  }
  for (auto [argument, type] : llvm::zip(carries.arguments, carries.types)) {
    argument.type = type;
    arguments.push_back(argument);
  }
  if (parser.resolveOperands(inputs.operands, inputs.types, inputs.at, result.operands) ||
      parser.resolveOperands(carries.operands, carries.types, carries.at, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  properties.operandSegmentSizes = {static_cast<int32_t>(inputs.operands.size()),
                                    static_cast<int32_t>(carries.operands.size())};
  ScanOp::ensureTerminator(*result.regions.back(), parser.getBuilder(), result.location);
  std::optional<int64_t> given;
  if (properties.steps)
    given = properties.steps.getInt();
  llvm::append_range(
      result.types, resultTypes(result.regions.back()->front(), carries.operands.size(), stepsOf(inputs.types, given)));
  return success();
}

// ---- checks

LogicalResult ScanOp::verify() {
  if (getInputs().empty() != getSteps().has_value())
    return emitOpError("expected either inputs or `steps`, found ")
           << getInputs().size() << " inputs and " << (getSteps() ? "steps" : "no steps");
  for (Value input : getInputs())
    if (!hasSteps(tensorOf(input)))
      return emitOpError("expected an input with an axis of steps, found ") << input.getType();
  int64_t steps = countSteps();
  if (steps < 1)
    return emitOpError("expected 1 step or more, found ") << steps;
  for (Value input : getInputs())
    if (int64_t found = tensorOf(input).getDimSize(stepAxis(tensorOf(input))); found != steps)
      return emitOpError("expected inputs of equally many steps, found ") << steps << " and " << found;
  return success();
}

static LogicalResult verifyArguments(ScanOp scan) {
  SmallVector<Type> types;
  for (Value input : scan.getInputs())
    types.push_back(ScanOp::partOf(tensorOf(input)));
  llvm::append_range(types, scan.getCarries().getTypes());
  if (scan.getBody().getArgumentTypes() != TypeRange(types))
    return scan.emitOpError("expected an argument for the part of each input and for each carry, found others");
  return success();
}

LogicalResult ScanOp::verifyRegions() {
  if (failed(verifyArguments(*this)))
    return failure();
  Block &body = getBody().front();
  for (Operation &op : body.without_terminator()) {
    if (op.getName().getDialectNamespace() == "graph") // until `graph-layout`
      continue;
    if (!isa<InterpretOpInterface, ScanOp, IterationOp>(op))
      return op.emitOpError("expected a computation inside mt.scan, found this");
  }
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() < getCarries().size() || yield->getNumOperands() == 0)
    return yield->emitOpError("expected the ") << getCarries().size() << " carries and the outputs of a step, found "
                                               << yield->getNumOperands() << " values";
  for (auto [carry, after] : llvm::zip(getCarries(), yield->getOperands()))
    if (carry.getType() != after.getType())
      return yield->emitOpError("expected a carry of type ") << carry.getType() << ", found " << after.getType();
  if (getResultTypes() != TypeRange(resultTypes(body, getCarries().size(), countSteps())))
    return emitOpError("expected the carries and the stacked outputs as results, found others");
  return success();
}
