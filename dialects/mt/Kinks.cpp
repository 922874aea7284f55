// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Kinks.h"
#include "dialects/mt/Compilation.h"

using namespace mlir;
using namespace mlir::mt;

static Kinks kinksOf(const Expr &like) {
  return Compilation(like.getBuilder().getInsertionBlock()->getParentOp()).getKinks();
}

Expr mlir::mt::gradientOfAbs(const Expr &a, const Expr &dy) {
  return kinksOf(a) == Kinks::jax ? select(a >= 0.0, dy, -dy) : dy * sign(a);
}

Expr mlir::mt::gradientOfDistance(const Expr &p, const Expr &t, const Expr &dy) {
  return kinksOf(p) == Kinks::jax ? select(t - p >= 0.0, -dy, dy) : sign(p - t) * dy;
}

static bool isShared(const Expr &like) { return kinksOf(like) != Kinks::tensorflow; }
static Expr isAtLeast(Compare wins, const Expr &a, const Expr &b) { return wins == Compare::gt ? a >= b : a <= b; }

Expr mlir::mt::gradientToFirst(Compare wins, const Expr &a, const Expr &b, const Expr &dy) {
  Expr given = select(isAtLeast(wins, a, b), dy, 0.0);
  return isShared(a) ? select(a == b, dy * 0.5, given) : given;
}
Expr mlir::mt::gradientToSecond(Compare wins, const Expr &a, const Expr &b, const Expr &dy) {
  Expr given = select(isAtLeast(wins, a, b), 0.0, dy);
  return isShared(a) ? select(a == b, dy * 0.5, given) : given;
}

Expr mlir::mt::isAboveKink(const Expr &a) { return kinksOf(a) == Kinks::jax ? a >= 0.0 : a > 0.0; }

Expr mlir::mt::gradientByBounds(const Expr &a, double low, double high, const Expr &below, const Expr &inside,
                                const Expr &above, AtBound atBound) {
  if (atBound == AtBound::inside && kinksOf(a) != Kinks::torch)
    return select(a >= low, select(a <= high, inside, above), below);
  return select(a > low, select(a < high, inside, above), below);
}
