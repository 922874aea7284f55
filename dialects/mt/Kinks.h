// SPDX-License-Identifier: Apache-2.0
//
// Gradients where a function has a kink: its derivative has two values there, and the frameworks take different ones.
// The compilation says whose are taken (Compilation::getKinks).
#ifndef DIALECTS_MT_KINKS_H
#define DIALECTS_MT_KINKS_H

#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// Of |a|: at 0 it is 0; of JAX it is 1.
Expr gradientOfAbs(const Expr &a, const Expr &dy);
// Of |t - p| to p: at 0 it is 0; of JAX it is -1.
Expr gradientOfDistance(const Expr &p, const Expr &t, const Expr &dy);
// Of the larger (a > b) or the smaller (a < b) of two, to a and to b: where they are equal, a has it; of JAX and
// PyTorch each has half.
Expr gradientToFirst(Compare wins, const Expr &a, const Expr &b, const Expr &dy);
Expr gradientToSecond(Compare wins, const Expr &a, const Expr &b, const Expr &dy);
// Whether a lies above the kink at 0 of a leaky relu; of JAX 0 does.
Expr isAboveKink(const Expr &a);

enum class AtBound { outside, inside };
// Of what has one gradient below `low`, one above `high` and one inside: at the bounds that of outside; of JAX and
// TensorFlow that of inside, where it is so.
Expr gradientByBounds(const Expr &a, double low, double high, const Expr &below, const Expr &inside, const Expr &above,
                      AtBound atBound);

} // namespace mlir::mt

#endif
