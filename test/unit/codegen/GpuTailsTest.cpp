// SPDX-License-Identifier: Apache-2.0
//
// Sums of pixels in the epilogue of the convolution or product that computes them (docs/gpu-code.md): samples that
// share tiles, parts of samples, residues of a stride; statistics of a batch normalization, gradients of it. With FMAs,
// mma and wgmma.
#include "test/unit/codegen/GpuFixture.h"

using namespace codegentest;

namespace {

std::string typeOf(const std::string &shape, const std::string &element) {
  return "tensor<" + shape + "x" + element + ">";
}

// A buffer of a program, with the type of its value.
struct Buffer {
  std::string name, type;
};
std::string listOf(const std::vector<Buffer> &buffers) {
  std::string names, types;
  for (const Buffer &buffer : buffers) {
    names += (names.empty() ? "%" : ", %") + buffer.name;
    types += (types.empty() ? "" : ", ") + std::string("!plan.buffer<") + buffer.type + ">";
  }
  return "(" + names + " : " + types + ")";
}

// A program of a launch of @head, which computes `image`, and its tail @tail.
std::string programText(const std::vector<Buffer> &reads, const Buffer &image, const std::vector<Buffer> &others,
                        const std::vector<Buffer> &sums) {
  std::string text = "plan.program @p attributes {shared_bytes = 0 : i64, variant_arena = array<i64: 0>, variant_bound "
                     "= array<i64: 0>} {\n";
  std::vector<Buffer> all(reads), ofTail{image};
  all.push_back(image);
  for (const auto *more : {&others, &sums})
    all.insert(all.end(), more->begin(), more->end());
  ofTail.insert(ofTail.end(), others.begin(), others.end());
  for (const Buffer &buffer : all)
    text += "%" + buffer.name + " = plan.buffer \"" + buffer.name + "\" arena [0] : <" + buffer.type + ">\n";
  return text + "plan.launch @head wait none reads" + listOf(reads) + " writes" + listOf({image}) + " counts [0]\n" +
         "plan.launch @tail wait device reads" + listOf(ofTail) + " writes" + listOf(sums) +
         " counts [0] {mt.tail}\n}\n";
}

// The results of a product in the type `element`.
std::string stored(const std::string &shape, const std::string &element) {
  if (element == "f32")
    return "mt.yield %0 : " + typeOf(shape, "f32");
  return "%1 = mt.cast %0 : " + typeOf(shape, "f32") + " to " + typeOf(shape, element) +
         "\nmt.yield %1 : " + typeOf(shape, element);
}
std::string extended(const std::string &name, const std::string &from, const std::string &shape,
                     const std::string &element) {
  return element == "f32"
             ? name + " = mt.reshape " + from + " : " + typeOf(shape, "f32") + " to " + typeOf(shape, "f32") + "\n"
             : name + " = mt.cast " + from + " : " + typeOf(shape, element) + " to " + typeOf(shape, "f32") + "\n";
}

class GpuTails : public Gpu {
protected:
  // A head whose results have this shape, with `columns` channels, and a tail. `sums`: whether the epilogue adds.
  void expectSums(const std::string &head, const std::vector<Buffer> &reads, const std::string &shape, int64_t columns,
                  const std::string &element, bool moments, bool sums = true) {
    bool isImage = std::count(shape.begin(), shape.end(), 'x') == 3;
    std::string image = typeOf(shape, element), wide = typeOf(shape, "f32"), over = isImage ? "[1, 2]" : "[1]";
    std::string channels = std::to_string(columns), sum = typeOf("?x" + channels, "f32");
    std::string one = (isImage ? "?x1x1x" : "?x1x") + channels, vector = typeOf(channels, "f32"), tail;
    if (moments)
      tail = "^bb0(%x: " + image + "):\n%s = mt.reduce sum, %x over " + over + " : " + image +
             "\n%f0 = mt.slice %x starts = " + (isImage ? "[0, 0, 0] sizes = [1, 1, " : "[0, 0] sizes = [1, ") +
             channels + "] : " + image + "\n" + (element == "f32" ? "" : extended("%f", "%f0", one, element)) +
             (element == "f32" ? "" : extended("%w", "%x", shape, element)) + "%d = mt.sub " +
             (element == "f32" ? "%x, %f0" : "%w, %f") + " : " + wide + ", " + typeOf(one, "f32") +
             "\n%s1 = mt.reduce sum, %d over " + over + " : " + wide + "\n%q = mt.square %d : " + wide +
             "\n%s2 = mt.reduce sum, %q over " + over + " : " + wide + "\nmt.yield %s, %s1, %s2 : " + sum + ", " + sum +
             ", " + sum;
    else
      tail = "^bb0(%g: " + image + ", %x: " + image + ", %m: " + vector + "):\n%s = mt.reduce sum, %g over " + over +
             " : " + image + "\n" +
             (element == "f32" ? "" : extended("%v", "%g", shape, element) + extended("%w", "%x", shape, element)) +
             "%d = mt.sub " + (element == "f32" ? "%x" : "%w") + ", %m : " + wide + ", " + vector + "\n%p = mt.mul " +
             (element == "f32" ? "%g" : "%v") + ", %d : " + wide + ", " + wide + "\n%s1 = mt.reduce sum, %p over " +
             over + " : " + wide + "\nmt.yield %s, %s1 : " + sum + ", " + sum;
    std::vector<Buffer> others, results{{"s", sum}, {"s1", sum}};
    if (moments)
      results.push_back({"s2", sum});
    else
      others = {{"other", image}, {"mean", vector}};
    std::string text = head + kernelText("tail", "rows", tail) + programText(reads, {"image", image}, others, results);
    auto module = parse(text, /*shards=*/8, /*batch=*/1 << 20); // tiles are large
    ASSERT_TRUE(module);
    for (int64_t rows : {1, 21}) {
      KernelComparison found =
          compareKernels(*module, /*shardRows=*/4, false, rows, 7, /*beyond=*/-1, /*integers=*/nullptr, simulated);
      EXPECT_EQ(found.problems, "") << shape << " " << rows << " rows";
      EXPECT_EQ(found.tails, 1);
      EXPECT_EQ(found.sums, sums ? 1 : 0) << shape;
    }
  }
  // 3 x 3 taps, and images of 64 channels that have 16 channels before.
  void expectConvolution(int64_t size, const std::string &element, bool moments, int64_t columns = 64,
                         bool sums = true) {
    std::string side = std::to_string(size), channels = std::to_string(columns);
    std::string shape = "?x" + side + "x" + side + "x" + channels;
    std::string x = typeOf("?x" + side + "x" + side + "x16", element), w = typeOf("3x3x16x" + channels, element);
    std::string head =
        kernelText("head", "conv",
                   "^bb0(%x: " + x + ", %w: " + w + "):\n%0 = mt.conv2d %x, %w padding = [1, 1, 1, 1] : " + x + ", " +
                       w + "\n" + stored(shape, element));
    expectSums(head, {{"x", x}, {"w", w}}, shape, columns, element, moments, sums);
  }
  void expectInputGradient(int64_t size, const std::string &element) { // with a stride of 2
    std::string side = std::to_string(size), half = std::to_string((size + 1) / 2);
    std::string shape = "?x" + side + "x" + side + "x64", g = typeOf("?x" + half + "x" + half + "x16", element),
                w = typeOf("1x1x64x16", element);
    std::string head =
        kernelText("head", "conv",
                   "^bb0(%g: " + g + ", %w: " + w + "):\n%0 = mt.conv2d_input_gradient %g, %w strides = [2, 2] : " + g +
                       ", " + w + " to " + typeOf(shape, "f32") + "\n" + stored(shape, element));
    expectSums(head, {{"g", g}, {"w", w}}, shape, 64, element, /*moments=*/false);
  }
  void expectProduct(int64_t tokens, const std::string &element, bool sums = true) {
    std::string lines = "?x" + std::to_string(tokens) + "x", x = typeOf(lines + "48", element),
                w = typeOf("48x128", element);
    std::string head = kernelText("head", "matmul",
                                  "^bb0(%x: " + x + ", %w: " + w + "):\n%0 = mt.matmul %x, %w : " + x + ", " + w +
                                      "\n" + stored(lines + "128", element));
    expectSums(head, {{"x", x}, {"w", w}}, lines + "128", 128, element, /*moments=*/false, sums);
  }
};

TEST_F(GpuTails, SumsInEpilogues) {
  expectConvolution(7, "f32", /*moments=*/true); // four samples share tiles
  expectConvolution(12, "f32", /*moments=*/false);
  expectInputGradient(9, "f32");
  expectProduct(200, "f32"); // parts of a sample
  expectProduct(32, "f32");
  expectProduct(20, "f32", /*sums=*/false);              // six samples are not of one shard
  expectConvolution(7, "f32", true, 96, /*sums=*/false); // tiles are wider than the columns
}

TEST_F(GpuTails, OnTensorCores) {
  precision = ", precision = bf16";
  expectConvolution(7, "bf16", /*moments=*/true);
  expectInputGradient(9, "bf16");
  expectProduct(32, "bf16");
}

TEST_F(GpuTails, ByWarpgroups) {
  simulated = mtc::simulatedWarpgroupsName;
  precision = ", precision = bf16";
  expectConvolution(7, "bf16", /*moments=*/true);
  expectConvolution(12, "bf16", /*moments=*/false, 128);
  expectInputGradient(9, "bf16");
}

} // namespace
