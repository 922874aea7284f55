// SPDX-License-Identifier: Apache-2.0
//
// Attentions of all forms, as kernels in MLIR's text.
#ifndef TEST_UNIT_CODEGEN_ATTENTIONCASES_H
#define TEST_UNIT_CODEGEN_ATTENTIONCASES_H

#include "test/unit/codegen/Harness.h"

namespace codegentest {

struct AttentionCase {
  std::string name;
  int64_t queries, keys, heads, keyHeads, keySize, valueSize;
  bool causal = false;
  int64_t window = 0;
  std::vector<int64_t> mask = {}; // its type's sizes: 4 with the batch axis, or fewer without
  float rate = 0;
  int64_t groups = 1; // an axis of this size before the positions
  float scale = 0;    // 0: as it is by itself
};

inline const std::vector<AttentionCase> attentionCases = {
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

inline std::string tensorText(std::vector<int64_t> shape, const char *element = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += (size < 0 ? "?" : std::to_string(size)) + "x";
  return text + element + ">";
}

struct AttentionTypes {
  std::string query, key, value, result, logs, mask;
  explicit AttentionTypes(const AttentionCase &c, const char *element = "f32") {
    auto of = [&](int64_t places, int64_t channels) {
      return c.groups == 1 ? tensorText({-1, places, channels}, element)
                           : tensorText({-1, c.groups, places, channels}, element);
    };
    query = of(c.queries, c.heads * c.keySize);
    key = of(c.keys, c.keyHeads * c.keySize);
    value = of(c.keys, c.keyHeads * c.valueSize);
    result = of(c.queries, c.heads * c.valueSize);
    logs = c.groups == 1 ? tensorText({-1, c.heads, c.queries}) : tensorText({-1, c.groups, c.heads, c.queries});
    mask = c.mask.empty() ? "" : tensorText(c.mask, "i1");
  }
};

// What the ops have in common: after the operands, and the types of what is optional.
inline std::string attentionAttributes(const AttentionCase &c, bool drops) {
  std::string text = c.mask.empty() ? "" : " mask %m";
  text += " heads = " + std::to_string(c.heads) + " key_heads = " + std::to_string(c.keyHeads);
  text += c.causal ? " causal" : "";
  text += c.window ? " window = " + std::to_string(c.window) : "";
  if (c.scale != 0)
    text += " scale = " + std::to_string(c.scale);
  if (c.rate > 0 && drops)
    text += " dropout \"stream\" rate = " + std::to_string(c.rate) + " step(%i)";
  return text + " : ";
}
inline std::string attentionArguments(const AttentionCase &c, const AttentionTypes &t) {
  return "%q: " + t.query + ", %k: " + t.key + ", %v: " + t.value + (c.mask.empty() ? "" : ", %m: " + t.mask) +
         (c.rate > 0 ? ", %i: tensor<i32>" : "");
}

inline std::string forwardText(const AttentionCase &c, const char *element = "f32") {
  AttentionTypes t(c, element);
  std::string mask = c.mask.empty() ? "" : ", " + t.mask;
  return kernelText(c.name, "attention",
                    "^bb0(" + attentionArguments(c, t) + "):\n%0 = mt.attention %q, %k, %v" +
                        attentionAttributes(c, true) + t.query + ", " + t.key + ", " + t.value + mask +
                        "\n%1 = mt.attention_log_sums %q, %k" + attentionAttributes(c, false) + t.query + ", " + t.key +
                        mask + "\nmt.yield %0, %1 : " + t.result + ", " + t.logs);
}
// With all gradients; of `wanted` one of them.
inline std::string gradientText(const AttentionCase &c, const std::string &name, const std::vector<std::string> &wanted,
                                const char *element = "f32") {
  AttentionTypes t(c, element);
  std::string body =
      "^bb0(" + attentionArguments(c, t) + ", %d: " + t.result + ", %y: " + t.result + ", %l: " + t.logs + "):\n";
  std::string names, types;
  for (const std::string &of : wanted) {
    body += "%" + of + " = mt.attention_gradient " + of + ", %d, %q, %k, %v, %y, %l" + attentionAttributes(c, true) +
            t.result + ", " + t.query + ", " + t.key + ", " + t.value + ", " + t.result + ", " + t.logs +
            (c.mask.empty() ? "" : ", " + t.mask) + "\n";
    names += (names.empty() ? "%" : ", %") + of;
    types += (types.empty() ? "" : ", ") + (of == "query" ? t.query : of == "key" ? t.key : t.value);
  }
  return kernelText(name, "attention_gradient", body + "mt.yield " + names + " : " + types);
}

} // namespace codegentest

#endif
