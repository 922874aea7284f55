// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Linear.h"

#include "frontend/logical/Known.h"

#include <limits>

using namespace mlir;

namespace mtc::logical {
namespace {

Value matrixTranspose(const Value &matrix) { return moveAxis(matrix, matrix.rank() - 1, matrix.rank() - 2); }

// The number of rows of a square matrix.
int64_t rowsOf(const Value &matrix) {
  size_t rank = matrix.rank();
  if (rank < 2 || matrix.size(rank - 1).batch || !(matrix.size(rank - 1) == matrix.size(rank - 2)))
    throw Refused("expected square matrices as the last two axes, found " + describe(matrix.shape()));
  int64_t rows = matrix.size(rank - 1).times;
  if (rows < 1 || rows > maxRows)
    throw Refused("a matrix of " + std::to_string(rows) + " rows; at most " + std::to_string(maxRows) +
                  " are supported");
  if (!matrix.isFloat())
    throw Refused("expected floats, found integers or booleans");
  return rows;
}

Value block(Ops &ops, const Value &matrix, std::pair<int64_t, int64_t> rows, std::pair<int64_t, int64_t> columns) {
  Value part = sliceAxis(ops, matrix, matrix.rank() - 2, rows.first, rows.second - rows.first);
  return sliceAxis(ops, part, matrix.rank() - 1, columns.first, columns.second - columns.first);
}
Value rowsOf(Ops &ops, const Value &matrix, int64_t first, int64_t end) {
  return sliceAxis(ops, matrix, matrix.rank() - 2, first, end - first);
}

Value solve(Ops &ops, const Value &a, const Value &b, bool lower, bool unit) {
  int64_t n = a.size(a.rank() - 1).times, half = n / 2;
  if (n == 1)
    return unit ? b : binary<mt::DivOp>(ops, b, a);
  // The half that depends on no other first.
  std::pair<int64_t, int64_t> first =
      lower ? std::pair<int64_t, int64_t>{0, half} : std::pair<int64_t, int64_t>{half, n};
  std::pair<int64_t, int64_t> rest =
      lower ? std::pair<int64_t, int64_t>{half, n} : std::pair<int64_t, int64_t>{0, half};
  Value x = solve(ops, block(ops, a, first, first), rowsOf(ops, b, first.first, first.second), lower, unit);
  Value left =
      binary<mt::SubOp>(ops, rowsOf(ops, b, rest.first, rest.second), matmul(ops, block(ops, a, rest, first), x));
  Value y = solve(ops, block(ops, a, rest, rest), left, lower, unit);
  return lower ? concat(ops, {x, y}, x.rank() - 2) : concat(ops, {y, x}, x.rank() - 2);
}

// Computes the Cholesky factor from the lower triangle of a matrix.
Value factor(Ops &ops, const Value &a) {
  int64_t n = a.size(a.rank() - 1).times, half = n / 2;
  if (n == 1)
    return unary<mt::SqrtOp>(ops, a);
  std::pair<int64_t, int64_t> above = {0, half}, below = {half, n};
  Value top = factor(ops, block(ops, a, above, above));
  Value side = matrixTranspose(solve(ops, top, matrixTranspose(block(ops, a, below, above)), true, false));
  Value rest = binary<mt::SubOp>(ops, block(ops, a, below, below), matmul(ops, side, matrixTranspose(side)));
  Value corner = factor(ops, rest);
  SmallVector<int64_t> none(a.rank(), 0), right(a.rank(), 0);
  right.back() = n - half;
  Value upper = pad(ops, top, 0, none, right), lower = concat(ops, {side, corner}, a.rank() - 1);
  return concat(ops, {upper, lower}, a.rank() - 2);
}

Value stopped(Ops &ops, const Value &value) {
  mlir::Value stored = mt::StopGradientOp::create(ops.builder, ops.location, value.stored.getType(), value.stored);
  return {stored, value.axes};
}

} // namespace

Value solveTriangular(Ops &ops, const Value &a, const Value &b, Triangle triangle) {
  int64_t rows = rowsOf(a);
  if (!triangle.left) { // X A = B is A^T X^T = B^T
    triangle.left = true;
    triangle.transposed = !triangle.transposed;
    if (b.rank() < 2)
      throw Refused("expected a matrix, found " + describe(b.shape()));
    return matrixTranspose(solveTriangular(ops, a, matrixTranspose(b), triangle));
  }
  if (b.rank() < 2 || !(b.size(b.rank() - 2) == Size(rows)) || !b.isFloat())
    throw Refused("expected matrices of " + std::to_string(rows) + " rows, found " + describe(b.shape()));
  bool lower = triangle.lower != triangle.transposed;
  return solve(ops, triangle.transposed ? matrixTranspose(a) : a, b, lower, triangle.unit);
}

Value cholesky(Ops &ops, const Value &given, bool lower) {
  int64_t rows = rowsOf(given);
  Value a = lower ? given : matrixTranspose(given), other = matrixTranspose(a);
  Known read = Known::zeros({rows, rows}, Known::Type::Boolean);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j <= i; ++j)
      read.numbers[static_cast<size_t>(i * rows + j)] = 1;
  // The triangle that is read, in both; the gradient goes to both.
  Value mirrored = stopped(ops, select(ops, read.lift(ops), a, other));
  Value both = binary<mt::MulOp>(ops, binary<mt::AddOp>(ops, a, other), 0.5);
  // Numbers of the triangle that is not read may be none.
  Value finite = compare(ops, mt::Compare::lt, unary<mt::AbsOp>(ops, stopped(ops, both)),
                         ops.number(std::numeric_limits<double>::infinity(), ops.real()));
  Value near = select(ops, finite, both, ops.number(0, ops.real()));
  return factor(ops, binary<mt::AddOp>(ops, mirrored, binary<mt::SubOp>(ops, near, stopped(ops, near))));
}

} // namespace mtc::logical
