// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices, and Fourier transforms, which are made of them.
#include "frontend/logical/Fourier.h"
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

void buildMatmul(Call &call) { call.give(logical::matmul(call.ops, call.value(0), call.value(1))); }

void buildGemm(Call &call) {
  Value a = call.value(0), b = call.value(1);
  if (a.rank() != 2 || b.rank() != 2)
    throw Refused("expected matrices, found " + logical::describe(a.shape()) + " and " + logical::describe(b.shape()));
  int64_t aSum = call.integer("transA", 0) ? 0 : 1, bSum = call.integer("transB", 0) ? 1 : 0;
  double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  Value result = logical::product(call.ops, a, b, {{aSum, bSum}});
  if (alpha != 1)
    result = logical::binary<mt::MulOp>(call.ops, result, alpha);
  if (call.has(2)) {
    Value c = call.value(2);
    result =
        logical::binary<mt::AddOp>(call.ops, result, beta == 1 ? c : logical::binary<mt::MulOp>(call.ops, c, beta));
  }
  call.give(result);
}

// Letters that stand in one term alone are summed first.
Value summedAlone(Call &call, size_t index, std::string &term, const std::string &others) {
  SmallVector<int64_t> alone;
  std::string remaining;
  for (size_t i = 0; i < term.size(); ++i)
    if (others.find(term[i]) == std::string::npos)
      alone.push_back(static_cast<int64_t>(i));
    else
      remaining += term[i];
  Value value = call.value(index);
  if (value.rank() != term.size())
    throw Refused("expected an operand of " + std::to_string(term.size()) + " axes for '" + term + "'");
  term = remaining;
  return alone.empty() ? value : logical::reduce(call.ops, mt::Reduction::sum, value, alone);
}

Value arrangedAs(const Value &value, const std::string &have, const std::string &wanted) {
  SmallVector<int64_t> order;
  for (char letter : wanted)
    order.push_back(static_cast<int64_t>(have.find(letter)));
  return logical::transpose(value, order);
}

void buildEinsum(Call &call) {
  std::string equation = call.text("equation", ""), text;
  for (char letter : equation)
    if (letter != ' ')
      text += letter;
  size_t arrow = text.find("->"), comma = text.find(',');
  std::string output = arrow == std::string::npos ? "" : text.substr(arrow + 2);
  std::string a = text.substr(0, std::min(comma, arrow));
  std::string b = comma < arrow ? text.substr(comma + 1, arrow - comma - 1) : "";
  auto isPlain = [](const std::string &term) {
    return llvm::all_of(term, [&](char letter) {
      return ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) && llvm::count(term, letter) == 1;
    });
  };
  bool two = comma < arrow;
  if (arrow == std::string::npos || !isPlain(a) || !isPlain(b) || !isPlain(output) || call.count() != 1u + two ||
      llvm::any_of(output, [&](char letter) { return (a + b).find(letter) == std::string::npos; }))
    throw Refused("the product " + equation + "; one or two plain terms and a result are supported");
  Value left = summedAlone(call, 0, a, b + output);
  if (!two)
    return call.give(arrangedAs(left, a, output));
  Value right = summedAlone(call, 1, b, a + output);
  logical::AxisPairs contracted, common;
  std::string have, rest;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t j = b.find(a[i]);
    bool inOutput = output.find(a[i]) != std::string::npos;
    if (j == std::string::npos)
      rest += a[i];
    else if (inOutput)
      common.push_back({i, j}), have += a[i];
    else
      contracted.push_back({i, j});
  }
  for (char letter : b)
    if (a.find(letter) == std::string::npos)
      rest += letter;
  call.give(arrangedAs(logical::product(call.ops, left, right, contracted, common), have + rest, output));
}

// The first elements along an axis, or all and zeros behind them.
Value resized(logical::Ops &ops, const Value &value, size_t axis, int64_t size) {
  Size found = value.size(axis);
  if (found.batch)
    throw Refused("a Fourier transform over the samples");
  if (size <= found.times)
    return logical::sliceAxis(ops, value, axis, 0, size);
  SmallVector<int64_t> none(value.rank(), 0), after(value.rank(), 0);
  after[axis] = size - found.times;
  return logical::pad(ops, value, 0, none, after);
}

// The Fourier transform of real numbers [..., n, ..., 1] or complex numbers [..., n, ..., 2] along one axis.
void buildDft(Call &call) {
  constexpr int64_t axisIsOperand = 20; // the opset
  Value x = call.floats(0);
  size_t rank = x.rank(), pair = rank - 1;
  bool operand = call.opset >= axisIsOperand, inverse = call.integer("inverse", 0) != 0,
       half = call.integer("onesided", 0) != 0;
  int64_t given = !operand ? call.integer("axis", 1) : call.has(2) ? call.expectInteger(2, "an axis") : -2;
  size_t axis = Call::axisOf(given, rank);
  bool real = rank > 1 && x.size(pair).isOne();
  if (axis == pair || !(real || x.size(pair) == Size(2)))
    throw Refused("expected real numbers or pairs along the last axis, found " + logical::describe(x.shape()));
  if (half && (inverse || !real))
    throw Refused("half of the spectrum of complex numbers, or half of an inverse transform");
  int64_t length = call.has(1) ? call.expectInteger(1, "a length") : x.size(axis).times;
  x = resized(call.ops, x, axis, length);
  if (!half)
    x = resized(call.ops, x, pair, 2);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(rank)));
  std::swap(order[axis], order[pair - 1]);
  x = logical::transpose(x, order);
  if (half)
    x = logical::squeeze(x, {static_cast<int64_t>(pair)});
  call.give(logical::transpose(logical::fourier(call.ops, x, {inverse, half, {length}}), order));
}

} // namespace

llvm::ArrayRef<OpEntry> productOps() {
  static constexpr OpEntry entries[] = {
      {"MatMul", buildMatmul}, {"Gemm", buildGemm}, {"Einsum", buildEinsum}, {"DFT", buildDft}};
  return entries;
}

} // namespace mtc::onnx
