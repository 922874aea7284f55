// SPDX-License-Identifier: Apache-2.0
//
// Kernels of kind scatter_add, to the bit: a shard's sum of a row starts at +0 and takes the positions that name the
// row in order; all shards with a sample are added along the tree, those that do not name the row too.
#include "test/unit/codegen/Harness.h"
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

struct ScatterShape {
  int64_t entries, width, ids; // ids: of a sample
  Options options;
};

using Choice = std::function<int32_t(int64_t position)>; // the id at a position of the batch

class ScatterAdd {
public:
  ScatterAdd(const ScatterShape &shape, int64_t rows, const Choice &choice)
      : shape(shape), rows(rows), updates(randoms(rows * shape.ids * shape.width, 7)) {
    for (int64_t i = 0; i < rows * shape.ids; ++i)
      ids.push_back(choice(i));
    for (size_t i = 0; i < updates.size(); i += 5)
      updates[i] = -0.0f;
  }

  std::vector<float> expected() const {
    int64_t size = shape.options.fast ? rows : shape.options.shardRows;
    return node(0, shape.options.fast ? 1 : shape.options.shards, size);
  }

  std::vector<float> computed(const Code &code, int64_t shares) const {
    Guarded named = guarded(ids), added = guarded(updates), table(shape.entries * shape.width * sizeof(float));
    std::memset(table.as<void>(), 0xff, shape.entries * shape.width * sizeof(float));
    code.run("kernel", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
             {named.as<void>(), added.as<void>(), table.as<void>()}, shares);
    return {table.as<float>(), table.as<float>() + shape.entries * shape.width};
  }

private:
  std::vector<float> shardSum(int64_t from, int64_t to) const {
    std::vector<float> sums(shape.entries * shape.width, 0.0f);
    for (int64_t i = from * shape.ids; i < to * shape.ids; ++i) {
      int64_t entry = std::min<int64_t>(std::max(ids[i], 0), shape.entries - 1);
      for (int64_t j = 0; j < shape.width; ++j)
        sums[entry * shape.width + j] += updates[i * shape.width + j];
    }
    return sums;
  }
  // Of `count` shards from `first`; the first has a sample.
  std::vector<float> node(int64_t first, int64_t count, int64_t size) const {
    if (count == 1)
      return shardSum(std::min(rows, first * size), std::min(rows, (first + 1) * size));
    std::vector<float> sums = node(first, count / 2, size);
    if ((first + count / 2) * size >= rows)
      return sums;
    std::vector<float> right = node(first + count / 2, count / 2, size);
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += right[i];
    return sums;
  }

  ScatterShape shape;
  int64_t rows;
  std::vector<int32_t> ids;
  std::vector<float> updates;
};

void expectScatters(const ScatterShape &shape, const std::vector<int64_t> &batches, const Choice &choice) {
  std::string each = "tensor<?x" + std::to_string(shape.ids), width = std::to_string(shape.width);
  std::string ids = each + "xi32>", updates = each + "x" + width + "xf32>";
  std::string table = "tensor<" + std::to_string(shape.entries) + "x" + width + "xf32>";
  auto codes = compile(kernelText("kernel", "scatter_add",
                                  "^bb0(%i: " + ids + ", %u: " + updates + "):\n  %0 = mt.scatter_add %i, %u : " + ids +
                                      ", " + updates + " to " + table + "\n  mt.yield %0 : " + table),
                       shape.options);
  for (int64_t rows : batches) {
    ScatterAdd scatter(shape, rows, choice);
    std::vector<float> expected = scatter.expected();
    for (auto &code : codes)
      for (int64_t shares : {1, 3}) {
        std::vector<float> computed = scatter.computed(*code, shares);
        for (size_t i = 0; i < expected.size(); ++i)
          ASSERT_EQ(std::memcmp(&computed[i], &expected[i], sizeof(float)), 0)
              << code->target << ", " << rows << " samples, " << shares << " shares: expected " << expected[i]
              << " in row " << i / shape.width << ", column " << i % shape.width << ", found " << computed[i];
      }
  }
}

// Ids without a pattern, some outside the table.
Choice scattered(int64_t entries, unsigned seed) {
  return [=](int64_t position) {
    uint32_t hash = (static_cast<uint32_t>(position) + seed) * 2654435761u;
    return static_cast<int32_t>((hash >> 8) % (entries + 4)) - 2;
  };
}

TEST(ScatterAdd, TakesShardsByTheTree) {
  for (int64_t shards : {1, 2, 8, 32}) {
    SCOPED_TRACE(shards);
    std::vector<int64_t> batches = {1, 2, 3, 3 * shards};
    if (shards > 1)
      batches.insert(batches.end(), {4, 3 * shards - 4, 3 * shards - 1});
    expectScatters({65, 48, 6, {3, shards, false}}, batches, scattered(65, shards));
  }
  expectScatters({9, 35, 1, {2, 8, true}}, {1, 15, 16}, scattered(9, 3));
}

TEST(ScatterAdd, TakesRowsThatFewShardsName) {
  // Row r is named by the shards of its bits.
  std::vector<int32_t> ids;
  for (int64_t shard = 0; shard < 8; ++shard)
    for (int64_t row = 0; row < 256; ++row)
      ids.push_back(row >> shard & 1 ? static_cast<int32_t>(row) : 256);
  expectScatters({257, 17, 256, {1, 8, false}}, {1, 2, 3, 4, 5, 6, 7, 8}, [&](int64_t i) { return ids[i]; });
}

TEST(ScatterAdd, TakesOneRowAlone) {
  for (int32_t id : {0, 64, 999, -7, 70})
    expectScatters({65, 272, 33, {2, 8, false}}, {1, 3, 16}, [=](int64_t) { return id; });
}

TEST(ScatterAdd, CutsTheTableWhereBlocksEnd) {
  // A row, a chunk of columns, a block of rows; one more, one less.
  for (int64_t width : {1, 15, 16, 17, 255, 256, 257, 768, 1500})
    for (int64_t entries : {1, 2, 63, 64, 65}) {
      SCOPED_TRACE(std::to_string(entries) + " rows of " + std::to_string(width));
      expectScatters({entries, width, 5, {2, 4, false}}, {1, 8}, scattered(entries, 11));
    }
  // The rows where blocks begin and end.
  for (int64_t entries : {255, 256, 4097, 9000})
    for (int64_t rows : {4, 64, 128, 141}) {
      SCOPED_TRACE(std::to_string(entries) + " rows, " + std::to_string(rows));
      expectScatters({entries, 40, 64, {1, 4, false}}, {4},
                     [=](int64_t i) { return static_cast<int32_t>((i / 2 * rows - i % 2) % entries); });
    }
}

TEST(ScatterAdd, TakesNoIds) { expectScatters({7, 20, 0, {2, 4, false}}, {1, 8}, scattered(7, 1)); }

} // namespace
