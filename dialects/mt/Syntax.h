// SPDX-License-Identifier: Apache-2.0
//
// Parsers and printers for `custom<...>` directives in assembly formats.
#ifndef DIALECTS_MT_SYNTAX_H
#define DIALECTS_MT_SYNTAX_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// A number of f32, or one of f64, whose type is written: `0.1 : f64`. Another type may follow: `0.1 : tensor<4xf32>`.
ParseResult parseReal(OpAsmParser &parser, FloatAttr &value);
void printReal(OpAsmPrinter &printer, Operation *, FloatAttr value);
ParseResult parseStart(OpAsmParser &parser, InitKindAttr &init, FloatAttr &value);
void printStart(OpAsmPrinter &printer, Operation *, InitKindAttr init, FloatAttr value);
ParseResult parseRole(OpAsmParser &parser, VariableRoleAttr &role);
void printRole(OpAsmPrinter &printer, Operation *, VariableRoleAttr role);
ParseResult parseSumsType(OpAsmParser &parser, Type &type);
void printSumsType(OpAsmPrinter &printer, Operation *, Type type);
// A value of a scalar and the type of a scalar, which is left out for f32.
ParseResult parseScalar(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &value, Type &type);
void printScalar(OpAsmPrinter &printer, Operation *, Value value, Type type);
ParseResult parseOptionalScalar(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &value, Type &type);
void printOptionalScalar(OpAsmPrinter &printer, Operation *, Value value, Type type);

} // namespace mlir::mt

#endif
