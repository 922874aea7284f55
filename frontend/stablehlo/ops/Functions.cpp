// SPDX-License-Identifier: Apache-2.0
//
// Functions of one number, or of two, that are formulas of others: of StableHLO, and of chlo.
#include "frontend/logical/Functions.h"
#include "frontend/stablehlo/Call.h"

namespace mtc::stablehlo {

// A composite has the name of the function as an attribute: "chlo.acos".
static void build(Call &call) {
  auto composite = llvm::dyn_cast_or_null<mlir::StringAttr>(call.attribute("name"));
  llvm::StringRef name = composite ? composite.getValue() : call.op.getName().getStringRef();
  logical::buildFunction(call, name.rsplit('.').second);
}

llvm::ArrayRef<OpEntry> functionOps() {
  static constexpr OpEntry entries[] = {{"ceil", build, 1},
                                        {"erfc", build, 1},
                                        {"tan", build, 1},
                                        {"sinh", build, 1},
                                        {"cosh", build, 1},
                                        {"asin", build, 1},
                                        {"acos", build, 1},
                                        {"atan", build, 1},
                                        {"asinh", build, 1},
                                        {"acosh", build, 1},
                                        {"atanh", build, 1},
                                        {"cbrt", build, 1},
                                        {"digamma", build, 1},
                                        {"atan2", build, 2},
                                        {"round_nearest_even", build, 1},
                                        {"round_nearest_afz", build, 1}};
  return entries;
}

} // namespace mtc::stablehlo
