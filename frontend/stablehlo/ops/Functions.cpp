// SPDX-License-Identifier: Apache-2.0
//
// Functions of one number, or of two, that are formulas of others: of StableHLO, and of chlo.
#include "frontend/logical/Functions.h"
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::buildFunction;
namespace known = logical::known;

void buildAngle(Call &call) {
  logical::Value y = call.value(0), x = call.value(1);
  if (!y.isFloat() || !x.isFloat())
    throw Refused("expected floats, found integers or booleans");
  call.give(logical::angleOf(call.ops, y, x));
}

} // namespace

llvm::ArrayRef<OpEntry> functionOps() {
  static constexpr OpEntry entries[] = {
      {"tan", buildFunction<logical::tangent, known::tangent>, 1},
      {"sinh", buildFunction<logical::hyperbolicSine, known::hyperbolicSine>, 1},
      {"cosh", buildFunction<logical::hyperbolicCosine, known::hyperbolicCosine>, 1},
      {"asin", buildFunction<logical::arcsine, known::arcsine>, 1},
      {"acos", buildFunction<logical::arccosine, known::arccosine>, 1},
      {"atan", buildFunction<logical::arctangent, known::arctangent>, 1},
      {"asinh", buildFunction<logical::hyperbolicArcsine, known::hyperbolicArcsine>, 1},
      {"acosh", buildFunction<logical::hyperbolicArccosine, known::hyperbolicArccosine>, 1},
      {"atanh", buildFunction<logical::hyperbolicArctangent, known::hyperbolicArctangent>, 1},
      {"cbrt", buildFunction<logical::cubeRoot, known::cubeRoot>, 1},
      {"round_nearest_even", buildFunction<logical::roundHalfEven, known::roundHalfEven>, 1},
      {"round_nearest_afz", buildFunction<logical::roundHalfAway, known::roundHalfAway>, 1},
      {"atan2", buildAngle, 2}};
  return entries;
}

} // namespace mtc::stablehlo
