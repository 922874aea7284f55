// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Syntax.h"

#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace mlir;
using namespace mlir::mt;

// Whether `: f32` or `: f64` follows the number that begins at `at`, in text that ends with a zero byte. MLIR's parser
// looks one token ahead, and another colon may stand there.
static bool hasType(const char *at) {
  auto skipBlanks = [&] { at += strspn(at, " \t\r\n"); };
  while (llvm::isAlnum(*at) || *at == '.' || *at == '+' || *at == '-')
    ++at;
  skipBlanks();
  if (*at++ != ':')
    return false;
  skipBlanks();
  return (!strncmp(at, "f32", 3) || !strncmp(at, "f64", 3)) && !llvm::isAlnum(at[3]) && at[3] != '_';
}
ParseResult mlir::mt::parseReal(OpAsmParser &parser, FloatAttr &value) {
  SMLoc at = parser.getCurrentLocation();
  return parser.parseAttribute(value, hasType(at.getPointer()) ? Type() : Type(parser.getBuilder().getF32Type()));
}
void mlir::mt::printReal(OpAsmPrinter &printer, Operation *, FloatAttr value) {
  if (value.getType().isF32())
    printer.printAttributeWithoutType(value);
  else
    printer.printAttribute(value);
}

// Parses `init(zeros)` or `init(constant = 0.5)`.
ParseResult mlir::mt::parseStart(OpAsmParser &parser, InitKindAttr &init, FloatAttr &value) {
  StringRef kind;
  SMLoc kindLoc;
  if (parser.parseKeyword("init") || parser.parseLParen() || parser.getCurrentLocation(&kindLoc) ||
      parser.parseKeyword(&kind))
    return failure();
  std::optional<InitKind> known = symbolizeInitKind(kind);
  if (!known)
    return parser.emitError(kindLoc) << "expected the name of an initialiser, found " << kind;
  init = InitKindAttr::get(parser.getContext(), *known);
  if (succeeded(parser.parseOptionalEqual()) && parseReal(parser, value))
    return failure();
  return parser.parseRParen();
}
void mlir::mt::printStart(OpAsmPrinter &printer, Operation *op, InitKindAttr init, FloatAttr value) {
  printer << "init(" << stringifyInitKind(init.getValue());
  if (value) {
    printer << " = ";
    printReal(printer, op, value);
  }
  printer << ")";
}

ParseResult mlir::mt::parseRole(OpAsmParser &parser, VariableRoleAttr &role) {
  StringRef word;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<VariableRole> known = symbolizeVariableRole(word);
  if (!known)
    return parser.emitError(at) << "expected learning_rate, iteration or average, found " << word;
  role = VariableRoleAttr::get(parser.getContext(), *known);
  return success();
}
void mlir::mt::printRole(OpAsmPrinter &printer, Operation *, VariableRoleAttr role) {
  printer << stringifyVariableRole(role.getValue());
}

// Parses ` : tensor<2x200xf32>`; if it is missing, the type is tensor<f32>.
ParseResult mlir::mt::parseSumsType(OpAsmParser &parser, Type &type) {
  if (succeeded(parser.parseOptionalColon()))
    return parser.parseType(type);
  type = RankedTensorType::get({}, parser.getBuilder().getF32Type());
  return success();
}
void mlir::mt::printSumsType(OpAsmPrinter &printer, Operation *, Type type) {
  if (auto tensor = cast<RankedTensorType>(type); tensor.getRank() != 0 || !tensor.getElementType().isF32())
    printer << " : " << type;
}

ParseResult mlir::mt::parseScalar(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &value, Type &type) {
  return failure(parser.parseOperand(value) || parseSumsType(parser, type));
}
void mlir::mt::printScalar(OpAsmPrinter &printer, Operation *op, Value value, Type type) {
  printer << value;
  printSumsType(printer, op, type);
}

ParseResult mlir::mt::parseOptionalScalar(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &value,
                                          Type &type) {
  return parseScalar(parser, value.emplace(), type);
}
void mlir::mt::printOptionalScalar(OpAsmPrinter &printer, Operation *op, Value value, Type type) {
  printScalar(printer, op, value, type);
}

ParseResult BatchSizeOp::parse(OpAsmParser &parser, OperationState &result) {
  Type type;
  if (parser.parseOptionalAttrDict(result.attributes) || parseSumsType(parser, type))
    return failure();
  result.addTypes(type);
  return success();
}
void BatchSizeOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDict((*this)->getAttrs());
  printSumsType(printer, *this, getType());
}
