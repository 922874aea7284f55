// SPDX-License-Identifier: Apache-2.0
//
// Parsers and printers for `custom<...>` directives in assembly formats.
#ifndef DIALECTS_MT_SYNTAX_H
#define DIALECTS_MT_SYNTAX_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

ParseResult parseStart(OpAsmParser &parser, InitKindAttr &init, FloatAttr &value);
void printStart(OpAsmPrinter &printer, Operation *, InitKindAttr init, FloatAttr value);
ParseResult parseRole(OpAsmParser &parser, VariableRoleAttr &role);
void printRole(OpAsmPrinter &printer, Operation *, VariableRoleAttr role);
ParseResult parseSumsType(OpAsmParser &parser, Type &type);
void printSumsType(OpAsmPrinter &printer, Operation *, Type type);

} // namespace mlir::mt

#endif
