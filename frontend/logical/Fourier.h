// SPDX-License-Identifier: Apache-2.0
//
// Discrete Fourier transforms, as products with matrices of cosines and sines. Complex numbers are pairs along a last
// axis of 2: the real part, the imaginary part.
#ifndef FRONTEND_LOGICAL_FOURIER_H
#define FRONTEND_LOGICAL_FOURIER_H

#include "frontend/logical/Compute.h"

namespace mtc::logical {

// A length without a factor of at most `maxRadix` is transformed by one matrix, up to `maxMatrix`.
constexpr int64_t maxRadix = 32, maxMatrix = 512;

// Over the last axes, one for each length: X[k] = sum of x[t] e^(-2 pi i t k / n), with `inverse` x[t] = sum of X[k]
// e^(2 pi i t k / n) / n. Without `real` both are complex, [..., n, 2]. With `real` x is real, [..., n], and X has the
// first n / 2 + 1 elements along the last axis; the others are their conjugates.
struct Fourier {
  bool inverse = false, real = false;
  llvm::SmallVector<int64_t> lengths;
};
Value fourier(Ops &ops, const Value &operand, const Fourier &form);

} // namespace mtc::logical

#endif
