// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradients against sums in double precision; the same bits from every CPU target and for any shares
// of the grid.
#include "dialects/mt/Random.h"
#include "test/unit/codegen/AttentionCases.h"
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

constexpr uint64_t seed = 5;
constexpr int32_t step = 3;

// Everything of one case, for some rows.
struct Reference {
  const AttentionCase &c;
  int64_t rows, first; // samples, and the global index of the first
  std::vector<float> q, k, v, d;
  std::vector<uint8_t> m;
  std::vector<double> y, logs, dq, dk, dv;

  Reference(const AttentionCase &c, int64_t rows, int64_t first) : c(c), rows(rows), first(first) {
    int64_t lines = rows * c.groups;
    q = randoms(lines * c.queries * c.heads * c.keySize, 1);
    k = randoms(lines * c.keys * c.keyHeads * c.keySize, 2);
    v = randoms(lines * c.keys * c.keyHeads * c.valueSize, 3);
    d = randoms(lines * c.queries * c.heads * c.valueSize, 4);
    for (float &x : q)
      x *= 4;
    int64_t flags = 1;
    for (int64_t size : c.mask)
      flags *= size < 0 ? rows : size;
    for (int64_t i = 0; i < flags && !c.mask.empty(); ++i)
      m.push_back((i * 7 + i / 11) % 3 != 0);
    y.assign(d.size(), 0);
    logs.assign(lines * c.heads * c.queries, 0);
    dq.assign(q.size(), 0);
    dk.assign(k.size(), 0);
    dv.assign(v.size(), 0);
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t head = 0; head < c.heads; ++head)
        for (int64_t t = 0; t < c.queries; ++t)
          compute(line, head, t);
  }

  bool sees(int64_t row, int64_t head, int64_t t, int64_t s) const {
    if ((c.causal && s > t) || (c.window && std::abs(t - s) >= c.window))
      return false;
    if (c.mask.empty())
      return true;
    std::vector<int64_t> index = {row, head, t, s};
    int64_t at = 0;
    for (size_t axis = 0; axis < c.mask.size(); ++axis) {
      int64_t i = index[4 - c.mask.size() + axis], size = c.mask[axis] < 0 ? rows : c.mask[axis];
      at = at * size + (size == 1 ? 0 : i);
    }
    return m[at];
  }
  double kept(int64_t line, int64_t head, int64_t t, int64_t s) const {
    if (c.rate == 0)
      return 1;
    int64_t element = (((first * c.groups + line) * c.heads + head) * c.queries + t) * c.keys + s;
    double number = mlir::mt::uniformElement(seed, mlir::mt::hashStream("stream"), step, element);
    return number >= c.rate ? 1 / (1 - c.rate) : 0;
  }

  void compute(int64_t line, int64_t head, int64_t t) {
    int64_t keyHead = head / (c.heads / c.keyHeads), query = ((line * c.queries + t) * c.heads + head);
    auto keyAt = [&](int64_t s) { return (line * c.keys + s) * c.keyHeads + keyHead; };
    double scale = 1 / std::sqrt(static_cast<float>(c.keySize)), sum = 0;
    std::vector<double> p(c.keys, 0);
    for (int64_t s = 0; s < c.keys; ++s) {
      if (!sees(line / c.groups, head, t, s))
        continue;
      double score = 0;
      for (int64_t i = 0; i < c.keySize; ++i)
        score += double(q[query * c.keySize + i]) * k[keyAt(s) * c.keySize + i];
      sum += p[s] = std::exp(score * scale);
    }
    if (sum == 0)
      return;
    logs[(line * c.heads + head) * c.queries + t] = std::log(sum);
    double delta = 0;
    for (int64_t s = 0; s < c.keys; ++s) {
      p[s] /= sum;
      for (int64_t i = 0; i < c.valueSize; ++i) {
        double part = p[s] * kept(line, head, t, s) * v[keyAt(s) * c.valueSize + i];
        y[query * c.valueSize + i] += part;
        delta += part * d[query * c.valueSize + i];
      }
    }
    for (int64_t s = 0; s < c.keys; ++s) {
      double product = 0;
      for (int64_t i = 0; i < c.valueSize; ++i) {
        product += double(d[query * c.valueSize + i]) * v[keyAt(s) * c.valueSize + i];
        dv[keyAt(s) * c.valueSize + i] += p[s] * kept(line, head, t, s) * d[query * c.valueSize + i];
      }
      double ds = p[s] * (product * kept(line, head, t, s) - delta) * scale;
      for (int64_t i = 0; i < c.keySize; ++i) {
        dq[query * c.keySize + i] += ds * k[keyAt(s) * c.keySize + i];
        dk[keyAt(s) * c.keySize + i] += ds * q[query * c.keySize + i];
      }
    }
  }
};

void expectNear(const float *actual, const std::vector<double> &expected, const std::string &where) {
  double size = 0;
  for (double x : expected)
    size = std::max(size, std::fabs(x));
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(actual[i] - expected[i]) <= 4e-6 * (size + 1))) {
      ADD_FAILURE() << where << ": element " << i << ": expected " << expected[i] << ", found " << actual[i];
      return;
    }
}

// Runs a kernel on every target and in several shares; the results have the same bits, and are returned.
std::vector<std::vector<float>> run(const std::vector<std::unique_ptr<Code>> &codes, const std::string &name,
                                    const Reference &r, const std::vector<void *> &operands,
                                    const std::vector<size_t> &sizes) {
  std::vector<std::vector<float>> first;
  for (auto &code : codes)
    for (int64_t shares : {1, 3, 8}) {
      std::vector<Guarded> outs;
      std::vector<void *> buffers = operands;
      for (size_t size : sizes)
        buffers.push_back(outs.emplace_back(size * 4).as<void>());
      mt_kernel_params params{r.rows, r.first, r.first + r.rows, 0, seed, nullptr, nullptr, 0};
      code->run(name, params, buffers, shares);
      std::vector<std::vector<float>> results;
      for (size_t i = 0; i < sizes.size(); ++i)
        results.emplace_back(outs[i].as<float>(), outs[i].as<float>() + sizes[i]);
      if (first.empty())
        first = results;
      for (size_t i = 0; i < sizes.size(); ++i)
        EXPECT_EQ(std::memcmp(results[i].data(), first[i].data(), sizes[i] * 4), 0)
            << name << " result " << i << " on " << code->target << " in " << shares << " shares has other bits";
    }
  return first;
}

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, EqualsItsFormula) {
  const AttentionCase &c = GetParam();
  auto codes = compile(forwardText(c) + gradientText(c, c.name + "_gradients", {"query", "key", "value"}) +
                       gradientText(c, c.name + "_query", {"query"}) + gradientText(c, c.name + "_value", {"value"}));
  for (int64_t rows : {1, 3}) {
    Reference r(c, rows, /*first=*/2);
    std::string where = c.name + " rows " + std::to_string(rows) + " ";
    Guarded q = guarded(r.q), k = guarded(r.k), v = guarded(r.v), m = guarded(r.m), d = guarded(r.d),
            i = guarded(std::vector<int32_t>{step});
    std::vector<void *> operands = {q.as<void>(), k.as<void>(), v.as<void>()};
    if (!c.mask.empty())
      operands.push_back(m.as<void>());
    if (c.rate > 0)
      operands.push_back(i.as<void>());
    auto forward = run(codes, c.name, r, operands, {r.y.size(), r.logs.size()});
    expectNear(forward[0].data(), r.y, where + "result");
    expectNear(forward[1].data(), r.logs, where + "log sums");

    Guarded y = guarded(forward[0]), l = guarded(forward[1]);
    for (void *more : {d.as<void>(), y.as<void>(), l.as<void>()})
      operands.push_back(more);
    auto gradients = run(codes, c.name + "_gradients", r, operands, {r.dq.size(), r.dk.size(), r.dv.size()});
    expectNear(gradients[0].data(), r.dq, where + "dQ");
    expectNear(gradients[1].data(), r.dk, where + "dK");
    expectNear(gradients[2].data(), r.dv, where + "dV");
    EXPECT_EQ(run(codes, c.name + "_query", r, operands, {r.dq.size()})[0], gradients[0]) << where;
    EXPECT_EQ(run(codes, c.name + "_value", r, operands, {r.dv.size()})[0], gradients[2]) << where;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Attention, testing::ValuesIn(attentionCases),
                         [](auto &info) { return info.param.name; });

} // namespace
