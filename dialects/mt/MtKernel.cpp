// SPDX-License-Identifier: Apache-2.0
//
// mt.kernel: syntax and verifier.
#include "dialects/mt/KernelKinds.h"

using namespace mlir;
using namespace mlir::mt;

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getNameAttr() << ' ' << stringifyKernelKind(getKind()) << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getOperands()), printer, [&](auto pair) {
    auto [argument, operand] = pair;
    printer << argument << " = " << operand << " : " << operand.getType();
  });
  printer << ") -> (";
  llvm::interleaveComma(getResultTypes(), printer);
  printer << ") ";
  if (getRecomputed())
    printer << "recomputed ";
  if (std::optional<Wait> wait = getWait())
    printer << "wait " << stringifyWait(*wait) << ' ';
  if (getShare())
    printer << "share ";
  printer.printOptionalAttrDictWithKeyword(llvm::to_vector((*this)->getDiscardableAttrs()));
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

// Parses `recomputed wait device share`; each mark is optional.
static ParseResult parseMarks(OpAsmParser &parser, KernelOp::Properties &properties) {
  MLIRContext *context = parser.getContext();
  if (succeeded(parser.parseOptionalKeyword("recomputed")))
    properties.recomputed = UnitAttr::get(context);
  if (succeeded(parser.parseOptionalKeyword("wait"))) {
    StringRef name;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return failure();
    std::optional<Wait> wait = symbolizeWait(name);
    if (!wait)
      return parser.emitError(at, "expected none, device or all, found ") << name;
    properties.wait = WaitAttr::get(context, *wait);
  }
  if (succeeded(parser.parseOptionalKeyword("share")))
    properties.share = UnitAttr::get(context);
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  StringRef kindName;
  SMLoc kindAt;
  if (parser.parseAttribute(name) || parser.getCurrentLocation(&kindAt) || parser.parseKeyword(&kindName))
    return failure();
  std::optional<KernelKind> kind = symbolizeKernelKind(kindName);
  if (!kind)
    return parser.emitError(kindAt, "expected a kernel kind, found ") << kindName;
  result.getOrAddProperties<Properties>().name = name;
  result.getOrAddProperties<Properties>().kind = KernelKindAttr::get(parser.getContext(), *kind);

  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  auto parseOne = [&] {
    if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
        parser.parseOperand(operands.emplace_back()) || parser.parseColonType(types.emplace_back()))
      return failure();
    arguments.back().type = types.back();
    return success();
  };
  SMLoc operandsAt = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne) || parser.parseArrow() ||
      parser.parseLParen())
    return failure();
  if (failed(parser.parseOptionalRParen()) && (parser.parseTypeList(result.types) || parser.parseRParen()))
    return failure();
  if (parseMarks(parser, result.getOrAddProperties<Properties>()) ||
      parser.resolveOperands(operands, types, operandsAt, result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  KernelOp::ensureTerminator(*result.regions.back(), parser.getBuilder(), result.location);
  return success();
}

LogicalResult KernelOp::verify() {
  if (getBody().getArgumentTypes() != getOperandTypes())
    return emitOpError("expected block arguments of the operands' types, found ")
           << getBody().getNumArguments() << " for " << getNumOperands() << " operands";
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("expected ") << getNumResults() << " yielded values of the results' types, found "
                                    << yield.getNumOperands();
  return infoOf(getKind()).verify(getBody().front(), [&] { return emitOpError(); });
}
