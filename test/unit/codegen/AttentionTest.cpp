// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradients against sums in double precision; the same bits from every CPU target and for any shares
// of the grid.
#include "dialects/mt/Random.h"
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

constexpr uint64_t seed = 5;
constexpr int32_t step = 3;

struct Case {
  std::string name;
  int64_t queries, keys, heads, keyHeads, keySize, valueSize;
  bool causal = false;
  int64_t window = 0;
  std::vector<int64_t> mask = {}; // its type's sizes: 4 with the batch axis, or fewer without
  float rate = 0;
  int64_t groups = 1; // an axis of this size before the places
};

const std::vector<Case> cases = {
    {"plain", 5, 5, 1, 1, 3, 3},
    {"one", 1, 1, 2, 2, 16, 16},
    {"crossed", 37, 70, 2, 2, 19, 33},
    {"causal", 150, 150, 2, 2, 32, 32, true},
    {"square", 128, 128, 1, 1, 64, 64},
    {"grouped", 66, 65, 6, 2, 8, 12, true},
    {"one_key_head", 20, 130, 3, 1, 17, 80},
    {"window", 200, 200, 1, 1, 16, 16, false, 40},
    {"causal_window", 200, 170, 1, 1, 16, 16, true, 70},
    {"padding", 40, 90, 2, 2, 16, 8, false, 0, {-1, 1, 1, 90}},
    {"of_queries", 40, 90, 2, 2, 16, 8, true, 0, {-1, 1, 40, 1}},
    {"given", 70, 33, 2, 1, 16, 8, false, 0, {-1, 2, 70, 33}},
    {"common", 70, 33, 2, 2, 16, 8, false, 0, {70, 33}},
    {"dropout", 70, 69, 2, 2, 16, 16, true, 0, {}, 0.25f},
    {"groups", 9, 10, 2, 2, 5, 6, false, 0, {}, 0, 3},
};

std::string tensor(std::vector<int64_t> shape, const char *element = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += (size < 0 ? "?" : std::to_string(size)) + "x";
  return text + element + ">";
}

struct Types {
  std::string query, key, value, result, logs, mask;
  explicit Types(const Case &c) {
    auto of = [&](int64_t places, int64_t channels) {
      return c.groups == 1 ? tensor({-1, places, channels}) : tensor({-1, c.groups, places, channels});
    };
    query = of(c.queries, c.heads * c.keySize);
    key = of(c.keys, c.keyHeads * c.keySize);
    value = of(c.keys, c.keyHeads * c.valueSize);
    result = of(c.queries, c.heads * c.valueSize);
    logs = of(c.heads, c.queries);
    mask = c.mask.empty() ? "" : tensor(c.mask, "i1");
  }
};

// What the ops have in common: after the operands, and the types of what is optional.
std::string attributes(const Case &c, bool drops) {
  std::string text = c.mask.empty() ? "" : " mask %m";
  text += " heads = " + std::to_string(c.heads) + " key_heads = " + std::to_string(c.keyHeads);
  text += c.causal ? " causal" : "";
  text += c.window ? " window = " + std::to_string(c.window) : "";
  if (c.rate > 0 && drops)
    text += " dropout \"stream\" rate = " + std::to_string(c.rate) + " step(%i)";
  return text + " : ";
}
std::string arguments(const Case &c, const Types &t) {
  return "%q: " + t.query + ", %k: " + t.key + ", %v: " + t.value + (c.mask.empty() ? "" : ", %m: " + t.mask) +
         (c.rate > 0 ? ", %i: tensor<i32>" : "");
}

std::string forwardText(const Case &c) {
  Types t(c);
  std::string mask = c.mask.empty() ? "" : ", " + t.mask;
  return kernelText(c.name, "attention",
                    "^bb0(" + arguments(c, t) + "):\n%0 = mt.attention %q, %k, %v" + attributes(c, true) + t.query +
                        ", " + t.key + ", " + t.value + mask + "\n%1 = mt.attention_log_sums %q, %k" +
                        attributes(c, false) + t.query + ", " + t.key + mask + "\nmt.yield %0, %1 : " + t.result +
                        ", " + t.logs);
}
// With all gradients; of `wanted` one of them.
std::string gradientText(const Case &c, const std::string &name, const std::vector<std::string> &wanted) {
  Types t(c);
  std::string body = "^bb0(" + arguments(c, t) + ", %d: " + t.result + ", %y: " + t.result + ", %l: " + t.logs + "):\n";
  std::string names, types;
  for (const std::string &of : wanted) {
    body += "%" + of + " = mt.attention_gradient " + of + ", %d, %q, %k, %v, %y, %l" + attributes(c, true) + t.result +
            ", " + t.query + ", " + t.key + ", " + t.value + ", " + t.result + ", " + t.logs +
            (c.mask.empty() ? "" : ", " + t.mask) + "\n";
    names += (names.empty() ? "%" : ", %") + of;
    types += (types.empty() ? "" : ", ") + (of == "query" ? t.query : of == "key" ? t.key : t.value);
  }
  return kernelText(name, "attention_gradient", body + "mt.yield " + names + " : " + types);
}

// Everything of one case, for some rows.
struct Reference {
  const Case &c;
  int64_t rows, first; // samples, and the global index of the first
  std::vector<float> q, k, v, d;
  std::vector<uint8_t> m;
  std::vector<double> y, logs, dq, dk, dv;

  Reference(const Case &c, int64_t rows, int64_t first) : c(c), rows(rows), first(first) {
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
      mt_kernel_params params{r.rows, r.first, r.first + r.rows, 0, seed, nullptr, nullptr};
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

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, EqualsItsFormula) {
  const Case &c = GetParam();
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
INSTANTIATE_TEST_SUITE_P(Cases, Attention, testing::ValuesIn(cases), [](auto &info) { return info.param.name; });

} // namespace
