// SPDX-License-Identifier: Apache-2.0
//
// Gradients at points where a function has no derivative. Frameworks choose different values there; the compilation
// selects the framework (Compilation::getKinks).
#ifndef DIALECTS_MT_KINKS_H
#define DIALECTS_MT_KINKS_H

#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// Gradient of |a|. At 0 it is 0, or dy for JAX.
Expr gradientOfAbs(const Expr &a, const Expr &dy);
// Gradient of |t - p| for p. At p = t it is 0, or -dy for JAX.
Expr gradientOfDistance(const Expr &p, const Expr &t, const Expr &dy);
// Gradients of the larger (`wins` is gt) or the smaller (lt) of a and b, for a and for b. If a = b, a gets all of dy,
// or each gets half for JAX and PyTorch.
Expr gradientToFirst(Compare wins, const Expr &a, const Expr &b, const Expr &dy);
Expr gradientToSecond(Compare wins, const Expr &a, const Expr &b, const Expr &dy);
// Whether a leaky relu has the slope 1 at a: a > 0, or a >= 0 for JAX.
Expr isAboveKink(const Expr &a);

enum class AtBound { outside, inside };
// Gradient of a function that has the gradient `below` for a < low, `above` for a > high and `inside` between them. At
// the bounds it is the gradient outside; if `atBound` is inside, JAX and TensorFlow use the gradient inside.
Expr gradientByBounds(const Expr &a, double low, double high, const Expr &below, const Expr &inside, const Expr &above,
                      AtBound atBound);

} // namespace mlir::mt

#endif
