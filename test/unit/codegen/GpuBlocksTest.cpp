// SPDX-License-Identifier: Apache-2.0
//
// Products of blocks of classes as GPU code, against CPU code: parts of a matrix that are read where they lie, and
// weight gradients that write a part of one value.
#include "test/unit/codegen/GpuFixture.h"

using namespace codegentest;

namespace {

std::string matrixType(const std::string &rows, int64_t columns, const std::string &element) {
  return "tensor<" + rows + "x" + std::to_string(columns) + "x" + element + ">";
}
std::string pairText(int64_t first, int64_t second) {
  return "[" + std::to_string(first) + ", " + std::to_string(second) + "]";
}

// `size` classes from `from` on of `all`, which a matrix of `width` others has as rows or as columns.
struct Part {
  int64_t all, from, size, width;
  std::string name() const { return std::to_string(all) + "_" + std::to_string(from) + "_" + std::to_string(size); }
  std::string matrix(bool rows, const std::string &element) const {
    return matrixType(std::to_string(rows ? all : width), rows ? width : all, element);
  }
  std::string part(bool rows, int64_t start, int64_t count, const std::string &of, const std::string &element) const {
    return "mt.slice " + of + " starts = " + (rows ? pairText(start, 0) : pairText(0, start)) +
           " sizes = " + (rows ? pairText(count, width) : pairText(width, count)) + " : " + matrix(rows, element) +
           "\n";
  }
};

// The logits of a block (`sums` false), or a term of the input gradient, which is a sum over the block's classes.
std::string partProduct(const Part &part, bool rows, bool sums, const std::string &element = "f32") {
  bool transposed = rows != sums;
  int64_t depth = sums ? part.size : part.width, columns = sums ? part.width : part.size;
  std::string x = matrixType("?", depth, element), out = matrixType("?", columns, "f32");
  std::string right = rows ? matrixType(std::to_string(part.size), part.width, element)
                           : matrixType(std::to_string(part.width), part.size, element);
  return kernelText("part_" + part.name() + (rows ? "_rows" : "_columns") + (sums ? "_sums" : ""), "matmul",
                    "^bb0(%x: " + x + ", %w: " + part.matrix(rows, element) +
                        "):\n%0 = " + part.part(rows, part.from, part.size, "%w", element) + "%1 = mt.matmul %x, %0 " +
                        (transposed ? "transpose_b" : "") + " : " + x + ", " + right + "\nmt.yield %1 : " + out);
}

// The gradient of a block of the matrix; `more`: the gradient of the logits has lines of so many more.
std::string partGradient(const Part &part, bool rows, const std::string &element = "f32", int64_t more = 0) {
  std::string x = matrixType("?", part.width, element), all = matrixType("?", part.size + more, element),
              g = matrixType("?", part.size, element), whole = part.matrix(rows, "f32");
  std::string text = "^bb0(%x: " + x + ", %all: " + all + ", %w: " + whole + "):\n", names, types;
  if (more)
    text += "%g = mt.slice %all starts = [0] sizes = [" + std::to_string(part.size) + "] : " + all + "\n";
  std::string side = more ? "%g" : "%all";
  text += "%0 = mt.matmul " + (rows ? side + ", %x" : "%x, " + side) +
          " transpose_a : " + (rows ? g + ", " + x : x + ", " + g) + "\n";
  auto add = [&](const std::string &name, int64_t count) {
    names += (names.empty() ? "" : ", ") + name;
    types += (types.empty() ? "" : ", ") + (rows ? matrixType(std::to_string(count), part.width, "f32")
                                                 : matrixType(std::to_string(part.width), count, "f32"));
  };
  if (part.from) {
    text += "%before = " + part.part(rows, 0, part.from, "%w", "f32");
    add("%before", part.from);
  }
  add("%0", part.size);
  if (int64_t end = part.from + part.size; end < part.all) {
    text += "%behind = " + part.part(rows, end, part.all - end, "%w", "f32");
    add("%behind", part.all - end);
  }
  return kernelText("gradient_" + part.name() + (rows ? "_rows" : "_columns"), "matmul_wgrad",
                    text + "%1 = mt.concat " + names + " dim = " + (rows ? "0" : "1") + " {mt.blocks = array<i64: 0, " +
                        std::to_string(part.size) + ">} : " + types + "\nmt.yield %1 : " + whole);
}

std::string partKernels(const Part &part, const std::string &element = "f32", int64_t more = 0) {
  std::string text;
  for (bool rows : {true, false})
    text += partProduct(part, rows, false, element) + partProduct(part, rows, true, element) +
            partGradient(part, rows, element, more);
  return text;
}

// Parts that begin on the boundary of an access, and such that begin and end anywhere; the first, one between, the
// last.
const Part firstClasses{101, 0, 64, 24}, betweenClasses{200, 64, 64, 40}, oddClasses{103, 33, 37, 21},
    lastClasses{260, 192, 68, 32};

TEST_F(Gpu, PartsOfMatrices) {
  expectEqual(partKernels(firstClasses) + partKernels(betweenClasses) + partKernels(oddClasses) +
              partKernels(lastClasses));
}

TEST_F(Gpu, PartsOfMatricesOnTensorCores) {
  precision = ", precision = tf32";
  expectEqual(partKernels(betweenClasses) + partKernels(oddClasses));
  precision = ", precision = bf16";
  expectEqual(partKernels(firstClasses, "bf16") + partKernels(betweenClasses, "bf16") +
              partKernels(oddClasses, "bf16", /*more=*/3) + partKernels(lastClasses, "bf16", /*more=*/4));
}

TEST_F(Gpu, PartsOfMatricesByWarpgroups) {
  simulated = mtc::simulatedWarpgroupsName;
  precision = ", precision = bf16";
  expectEqual(partKernels({320, 128, 128, 72}, "bf16") + partKernels({264, 192, 72, 64}, "bf16"), 3, false, 8,
              /*batch=*/1 << 20);
}

// Shards that are cut into slices, whose last block stores the part.
TEST_F(Gpu, PartsOfLongSums) {
  expectEqual(partGradient({200, 64, 64, 40}, true) + partGradient({200, 64, 64, 40}, false), 200);
}

} // namespace
