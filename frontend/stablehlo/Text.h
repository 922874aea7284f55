// SPDX-License-Identifier: Apache-2.0
//
// StableHLO's own text, which frameworks print where the generic form is not asked for. The dialects have no ops here:
// the parser reads operands, attributes and regions, and makes unregistered ops, as MLIR does for the generic form.
#ifndef FRONTEND_STABLEHLO_TEXT_H
#define FRONTEND_STABLEHLO_TEXT_H

#include "mlir/IR/MLIRContext.h"

namespace mtc::stablehlo {

// Lets the parser of a context read the text of the dialects func, stablehlo, chlo and mhlo.
void loadTextDialects(mlir::MLIRContext &context);

} // namespace mtc::stablehlo

#endif
