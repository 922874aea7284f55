// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra of StableHLO.
#include "frontend/logical/Linear.h"
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

bool flag(const Call &call, StringRef name, bool otherwise) {
  auto found = dyn_cast_or_null<BoolAttr>(call.attribute(name));
  return found ? found.getValue() : otherwise;
}

void buildTriangularSolve(Call &call) {
  std::string transposed = call.text("transpose_a"); // "<NO_TRANSPOSE>", of #stablehlo<transpose ...>
  bool straight = StringRef(transposed).contains("NO_TRANSPOSE");
  if (!straight && !StringRef(transposed).contains("TRANSPOSE") && !StringRef(transposed).contains("ADJOINT"))
    throw Refused("expected transpose_a of NO_TRANSPOSE, TRANSPOSE or ADJOINT, found " + transposed);
  logical::Triangle triangle{flag(call, "left_side", true), flag(call, "lower", true), !straight,
                             flag(call, "unit_diagonal", false)};
  call.give(logical::solveTriangular(call.ops, call.value(0), call.value(1), triangle));
}

// The other triangle of the result is not said; it is 0 here.
void buildCholesky(Call &call) {
  bool lower = flag(call, "lower", false);
  logical::Value made = logical::cholesky(call.ops, call.value(0), lower);
  call.give(lower ? made : logical::moveAxis(made, made.rank() - 1, made.rank() - 2));
}

} // namespace

llvm::ArrayRef<OpEntry> linearOps() {
  static constexpr OpEntry entries[] = {{"triangular_solve", buildTriangularSolve, 2}, {"cholesky", buildCholesky, 1}};
  return entries;
}

} // namespace mtc::stablehlo
