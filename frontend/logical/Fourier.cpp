// SPDX-License-Identifier: Apache-2.0
//
// A length n = r m is transformed in three parts: m transforms of length r, a rotation of each element, r transforms of
// length m. A transform of a short length is one product with a matrix, and the rotation is a part of the first two. So
// every sum is one of mt.matmul, in a fixed order, and the gradients are products too.
#include "frontend/logical/Fourier.h"
#include "frontend/logical/Known.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace mtc::logical {
namespace {

// The cosine and the sine of 2 pi numerator / n, with a numerator below n.
std::pair<double, double> rotation(int64_t numerator, int64_t n) {
  double angle = 2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// The largest factor of at most maxRadix, for lengths that one matrix would not be cheaper for; else 1.
int64_t radixOf(int64_t n) {
  constexpr int64_t shortest = 2 * maxRadix;
  for (int64_t radix = maxRadix; n > shortest && radix > 1; --radix)
    if (n % radix == 0)
      return radix;
  if (n > maxMatrix)
    throw Refused("a Fourier transform of length " + std::to_string(n) + ", which has no factor from 2 to " +
                  std::to_string(maxRadix) + ": pad to another length; without such a factor at most " +
                  std::to_string(maxMatrix) + " are supported");
  return 1;
}

// Transforms of one direction along the last axis.
class Lines {
public:
  Lines(Ops &ops, bool inverse) : ops(ops), sign(inverse ? 1 : -1) {}

  // [..., n] of real or [..., n, 2] of complex numbers; the result times `scale`, of which `toReal` keeps the real
  // part.
  Value run(const Value &x, bool ofReal, bool toReal, double scale) {
    Shape lead(x.shape());
    if (!ofReal)
      lead.pop_back();
    int64_t n = lead.pop_back_val().times, radix = radixOf(n), parts = ofReal ? 1 : 2;
    if (radix == 1) {
      Value flat = reshape(ops, x, with(lead, {n * parts}));
      return reshape(ops, matmul(ops, flat, matrix(n, ofReal, toReal, false, scale)), with(lead, complex({n}, toReal)));
    }
    int64_t m = n / radix;
    Value columns = exchanged(reshape(ops, x, with(lead, complex({radix, m}, ofReal))), lead.size());
    Value flat = reshape(ops, columns, with(lead, {m, radix * parts}));
    Value kept = matmul(ops, flat, matrix(radix, ofReal, false, false, scale));
    Value transformed = matmul(ops, flat, matrix(radix, ofReal, false, true, scale));
    Value rotated = binary<mt::AddOp>(ops, binary<mt::MulOp>(ops, kept, rotations(m, radix, false)),
                                      binary<mt::MulOp>(ops, transformed, rotations(m, radix, true)));
    Value rows = exchanged(reshape(ops, rotated, with(lead, {m, radix, 2})), lead.size());
    Value made = exchanged(run(rows, false, toReal, 1), lead.size());
    return reshape(ops, made, with(lead, complex({n}, toReal)));
  }

private:
  Ops &ops;
  double sign; // of the exponent

  static Shape with(const Shape &lead, ArrayRef<int64_t> sizes) {
    Shape shape(lead);
    shape.append(sizes.begin(), sizes.end());
    return shape;
  }
  static SmallVector<int64_t> complex(SmallVector<int64_t> sizes, bool real) {
    if (!real)
      sizes.push_back(2);
    return sizes;
  }
  static Value exchanged(const Value &value, size_t axis) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(value.rank())));
    std::swap(order[axis], order[axis + 1]);
    return transpose(value, order);
  }

  // [inputs, outputs] of a transform of length n. With `byI` the results are times i.
  Value matrix(int64_t n, bool ofReal, bool toReal, bool byI, double scale) {
    int64_t parts = ofReal ? 1 : 2, outputs = toReal ? 1 : 2;
    Known made = Known::zeros({n * parts, n * outputs}, Known::Type::Float);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t k = 0; k < n; ++k) {
        auto [cosine, sine] = rotation(t * k % n, n);
        sine *= sign;
        if (byI) // i (c + i s) = -s + i c
          std::tie(cosine, sine) = std::pair(-sine, cosine);
        double of[2][2] = {{cosine, sine}, {-sine, cosine}}; // by part of x, part of the result
        for (int64_t part = 0; part < parts; ++part)
          for (int64_t output = 0; output < outputs; ++output)
            made.numbers[static_cast<size_t>(((t * parts + part) * n + k) * outputs + output)] =
                scale * of[part][output];
      }
    return made.lift(ops);
  }
  // [m, radix * 2]: by which element k of transform t is rotated, the cosines or the sines.
  Value rotations(int64_t m, int64_t radix, bool sines) {
    Known made = Known::zeros({m, radix * 2}, Known::Type::Float);
    for (int64_t t = 0; t < m; ++t)
      for (int64_t k = 0; k < radix; ++k) {
        auto [cosine, sine] = rotation(t * k, m * radix);
        for (int64_t part = 0; part < 2; ++part)
          made.numbers[static_cast<size_t>((t * radix + k) * 2 + part)] = sines ? sign * sine : cosine;
      }
    return made.lift(ops);
  }
};

// The spectrum of n elements of real numbers, from its first n / 2 + 1.
Value wholeSpectrum(Ops &ops, const Value &half, int64_t n) {
  size_t axis = half.rank() - 2;
  int64_t others = n - half.size(axis).times;
  if (others == 0)
    return half;
  Value mirrored = reverse(ops, sliceAxis(ops, half, axis, 1, others), {static_cast<int64_t>(axis)});
  Known signs = Known::zeros({2}, Known::Type::Float);
  signs.numbers = {1, -1};
  return concat(ops, {half, binary<mt::MulOp>(ops, mirrored, signs.lift(ops))}, axis);
}

void check(const Value &operand, const Fourier &form) {
  size_t count = form.lengths.size(), pair = form.real && !form.inverse ? 0 : 1;
  if (!operand.isFloat())
    throw Refused("expected floats, found integers or booleans");
  if (count == 0 || operand.rank() < count + pair || (pair && !(operand.size(operand.rank() - 1) == Size(2))))
    throw Refused("expected axes to transform" + std::string(pair ? " and pairs of numbers after them" : "") +
                  ", found " + describe(operand.shape()));
  for (size_t i = 0; i < count; ++i) {
    int64_t length = form.lengths[i], expected = length;
    if (i + 1 == count && form.real && form.inverse)
      expected = length / 2 + 1;
    Size found = operand.size(operand.rank() - pair - count + i);
    if (length < 1 || found.batch || found.times != expected)
      throw Refused("expected " + std::to_string(expected) + " elements for a length of " + std::to_string(length) +
                    ", found " + found.text());
  }
}

} // namespace

Value fourier(Ops &ops, const Value &operand, const Fourier &form) {
  check(operand, form);
  size_t count = form.lengths.size();
  int64_t last = form.lengths.back();
  Lines lines(ops, form.inverse);
  auto scale = [&](int64_t length) { return form.inverse ? 1 / static_cast<double>(length) : 1; };
  Value x = operand;
  if (form.real && !form.inverse) {
    Value whole = lines.run(x, /*ofReal=*/true, /*toReal=*/false, 1);
    x = sliceAxis(ops, whole, whole.rank() - 2, 0, last / 2 + 1);
  } else if (!form.real) {
    x = lines.run(x, false, false, scale(last));
  }
  // The axes before the last, each of which is the last for a while.
  for (size_t i = 0; i + 1 < count; ++i) {
    size_t axis = x.rank() - 1 - count + i, end = x.rank() - 2;
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(x.rank())));
    std::swap(order[axis], order[end]);
    x = transpose(lines.run(transpose(x, order), false, false, scale(form.lengths[i])), order);
  }
  if (form.real && form.inverse)
    x = lines.run(wholeSpectrum(ops, x, last), false, /*toReal=*/true, scale(last));
  return x;
}

} // namespace mtc::logical
