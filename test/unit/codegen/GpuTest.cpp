// SPDX-License-Identifier: Apache-2.0
//
// Kernels as GPU code, run by fibers in place of threads, against CPU code; and as PTX, which must round as they do.
#include "test/unit/codegen/GpuFixture.h"

using namespace codegentest;

namespace {

const std::string rowsOf10 = kernelText("softmax", "rows", R"(^bb0(%x: tensor<?x10xf32>, %b: tensor<10xf32>):
  %0 = mt.add %x, %b : tensor<?x10xf32>, tensor<10xf32>
  %1 = mt.reduce max, %0 over [1] : tensor<?x10xf32>
  %2 = mt.reshape %1 : tensor<?xf32> to tensor<?x1xf32>
  %3 = mt.sub %0, %2 : tensor<?x10xf32>, tensor<?x1xf32>
  %4 = mt.exp %3 : tensor<?x10xf32>
  %5 = mt.reduce sum, %4 over [1] : tensor<?x10xf32>
  %6 = mt.reshape %5 : tensor<?xf32> to tensor<?x1xf32>
  %7 = mt.div %4, %6 : tensor<?x10xf32>, tensor<?x1xf32>
  %8 = mt.argmax %7 : tensor<?x10xf32>
  mt.yield %7, %5, %8 : tensor<?x10xf32>, tensor<?xf32>, tensor<?xi32>)");
const std::string longRows = kernelText("center", "rows", R"(^bb0(%x: tensor<?x333xf32>):
  %0 = mt.reduce sum, %x over [1] : tensor<?x333xf32>
  %1 = mt.reshape %0 : tensor<?xf32> to tensor<?x1xf32>
  %2 = mt.sub %x, %1 : tensor<?x333xf32>, tensor<?x1xf32>
  %3 = mt.tanh %2 : tensor<?x333xf32>
  %4 = mt.reduce max, %3 over [1] : tensor<?x333xf32>
  mt.yield %3, %4 : tensor<?x333xf32>, tensor<?xf32>)");
const std::string line = kernelText("line", "rows", R"(^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>):
  %0 = mt.mul %x, %y : tensor<?xf32>, tensor<?xf32>
  %1 = mt.log %0 : tensor<?xf32>
  mt.yield %1 : tensor<?xf32>)");
const std::string whole = kernelText("whole", "single", R"(^bb0(%x: tensor<50x3xf32>, %s: tensor<f32>):
  %0 = mt.reduce sum, %x over [0, 1] : tensor<50x3xf32>
  %1 = mt.mul %0, %s : tensor<f32>, tensor<f32>
  %2 = mt.transpose %x by [1, 0] : tensor<50x3xf32>
  mt.yield %1, %2 : tensor<f32>, tensor<3x50xf32>)");
const std::string update =
    kernelText("update", "elementwise", R"(^bb0(%w: tensor<5000xf32>, %g: tensor<5000xf32>, %r: tensor<f32>):
  %0 = mt.mul %g, %r : tensor<5000xf32>, tensor<f32>
  %1 = mt.sub %w, %0 : tensor<5000xf32>, tensor<5000xf32>
  mt.yield %1 : tensor<5000xf32>)");

// Of operands of the element type.
std::string dense(int64_t depth, int64_t columns, bool transposed, const std::string &element = "f32") {
  auto type = [](int64_t a, int64_t b, const std::string &element) {
    return "tensor<" + (a < 0 ? "?" : std::to_string(a)) + "x" + std::to_string(b) + "x" + element + ">";
  };
  std::string out = type(-1, columns, "f32"), x = type(-1, depth, element),
              w = transposed ? type(columns, depth, element) : type(depth, columns, element);
  std::string bias = "tensor<" + std::to_string(columns) + "xf32>";
  return kernelText("dense_" + std::to_string(columns) + (transposed ? "_transposed" : ""), "matmul",
                    "^bb0(%x: " + x + ", %w: " + w + ", %b: " + bias + "):\n%0 = mt.matmul %x, %w " +
                        (transposed ? "transpose_b" : "") + " : " + x + ", " + w + "\n%1 = mt.add %0, %b : " + out +
                        ", " + bias + "\n%2 = mt.relu %1 : " + out + "\nmt.yield %2 : " + out);
}

// `more`: the left side is the first elements of lines of so many more.
std::string gradient(int64_t height, int64_t columns, const std::string &element = "f32", int64_t more = 0) {
  auto type = [&](int64_t size) { return "tensor<?x" + std::to_string(size) + "x" + element + ">"; };
  std::string rows = std::to_string(height), x = type(height), all = type(height + more), g = type(columns);
  std::string part = more ? "%x = mt.slice %all starts = [0] sizes = [" + rows + "] : " + all + "\n" : "";
  return kernelText("gradient_" + std::to_string(columns), "matmul_wgrad",
                    (more ? "^bb0(%all: " : "^bb0(%x: ") + all + ", %g: " + g + "):\n" + part +
                        "%0 = mt.matmul %x, %g transpose_a : " + x + ", " + g + "\nmt.yield %0 : tensor<" + rows + "x" +
                        std::to_string(columns) + "xf32>");
}

const std::string sums = kernelText("sums", "reduce", R"(^bb0(%x: tensor<?x70xf32>, %y: tensor<?xf32>):
  %0 = mt.reduce sum, %x over [0] : tensor<?x70xf32>
  %1 = mt.reduce sum, %y over [0] : tensor<?xf32>
  mt.yield %0, %1 : tensor<70xf32>, tensor<f32>)");
const std::string transpose = kernelText("turn", "transpose", R"(^bb0(%x: tensor<45x70xf32>):
  %0 = mt.transpose %x by [1, 0] : tensor<45x70xf32>
  mt.yield %0 : tensor<70x45xf32>)");

// What has no rows is many blocks' too: copies, moves, and what is computed of each element.
const std::string moves = kernelText("flat", "single", R"(^bb0(%x: tensor<30x4x17xf32>):
  %0 = mt.reshape %x : tensor<30x4x17xf32> to tensor<30x68xf32>
  mt.yield %0 : tensor<30x68xf32>)") +
                          kernelText("turned", "single", R"(^bb0(%x: tensor<30x3x17xf32>, %s: tensor<f32>):
  %0 = mt.transpose %x by [1, 2, 0] : tensor<30x3x17xf32>
  %1 = mt.mul %0, %s : tensor<3x17x30xf32>, tensor<f32>
  %2 = mt.mul %s, %s : tensor<f32>, tensor<f32>
  mt.yield %1, %2 : tensor<3x17x30xf32>, tensor<f32>)");

TEST_F(Gpu, RowsAndMaps) { expectEqual(rowsOf10 + longRows + line + whole + moves + update + transpose); }

// Accesses of 16 bytes at places that are no multiples of them trap on a GPU, and nowhere else.
TEST_F(Gpu, MisalignedAccess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto module = parse(dense(32, 64, false) + gradient(64, 32) + update + sums);
  ASSERT_TRUE(module);
  EXPECT_EQ(compareKernels(*module, 3, false, 21, 1, /*beyond=*/0).problems, "");
  EXPECT_EXIT(compareKernels(*module, 3, false, 21, 1, /*beyond=*/8), testing::ExitedWithCode(7),
              "expected a multiple of 16 bytes, found 8 beyond one");
  // Numbers lie at multiples of their own size.
  auto numbers = parse(kernelText("numbers", "single", R"(^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %0 = mt.mul %a, %b : tensor<f32>, tensor<f32>
  mt.yield %0 : tensor<f32>)"));
  ASSERT_TRUE(numbers);
  EXPECT_EQ(compareKernels(*numbers, 3, false, 21, 1, /*beyond=*/4).problems, "");
}

TEST_F(Gpu, Products) { expectEqual(dense(37, 10, false) + dense(50, 100, true) + dense(3, 65, false)); }

TEST_F(Gpu, SumsOverTheBatch) {
  expectEqual(gradient(40, 33) + gradient(7, 10) + gradient(13, 70, "f32", 3) + sums);
  expectEqual(gradient(40, 33) + sums, 24, /*fast=*/true);
  expectEqual(gradient(9, 5) + sums, 1, false, 4096);
  // Shards of several slices, the last of them short, and of more rows than there are slices for.
  auto module = parse(sums, 4);
  ASSERT_TRUE(module);
  for (int64_t rows : {1, 40, 160, 399, 400})
    EXPECT_EQ(compareKernels(*module, 100, false, rows, 1).problems, "") << "rows " << rows;
  EXPECT_EQ(compareKernels(*module, 1500, false, 4700, 1).problems, "");
}

TEST_F(Gpu, Images) {
  expectEqual(kernelText("conv", "conv", R"(^bb0(%x: tensor<?x9x8x4xf32>, %w: tensor<3x2x2x6xf32>, %b: tensor<6xf32>):
  %0 = mt.conv2d %x, %w strides = [2, 1] padding = [1, 1, 0, 1] groups = 2 : tensor<?x9x8x4xf32>, tensor<3x2x2x6xf32>
  %1 = mt.add %0, %b : tensor<?x5x8x6xf32>, tensor<6xf32>
  mt.yield %1 : tensor<?x5x8x6xf32>)") +
              kernelText("back", "conv", R"(^bb0(%g: tensor<?x5x8x6xf32>, %w: tensor<3x2x2x6xf32>):
  %0 = mt.conv2d_input_gradient %g, %w strides = [2, 1] padding = [1, 1, 0, 1] groups = 2
      : tensor<?x5x8x6xf32>, tensor<3x2x2x6xf32> to tensor<?x9x8x4xf32>
  mt.yield %0 : tensor<?x9x8x4xf32>)") +
              kernelText("kernel", "conv_wgrad", R"(^bb0(%x: tensor<?x9x8x4xf32>, %g: tensor<?x5x8x6xf32>):
  %0 = mt.conv2d_kernel_gradient %x, %g strides = [2, 1] padding = [1, 1, 0, 1] groups = 2
      : tensor<?x9x8x4xf32>, tensor<?x5x8x6xf32> to tensor<3x2x2x6xf32>
  mt.yield %0 : tensor<3x2x2x6xf32>)") +
              kernelText("scatter", "scatter_add", R"(^bb0(%i: tensor<?x5xi32>, %u: tensor<?x5x6xf32>):
  %0 = mt.scatter_add %i, %u : tensor<?x5xi32>, tensor<?x5x6xf32> to tensor<9x6xf32>
  mt.yield %0 : tensor<9x6xf32>)") +
              kernelText("scatter_many", "scatter_add", R"(^bb0(%i: tensor<?x171xi32>, %u: tensor<?x171x50xf32>):
  %0 = mt.scatter_add %i, %u : tensor<?x171xi32>, tensor<?x171x50xf32> to tensor<23x50xf32>
  mt.yield %0 : tensor<23x50xf32>)") +
              kernelText("pool", "rows", R"(^bb0(%x: tensor<?x6x7x3xf32>, %g: tensor<?x3x4x3xf32>):
  %0 = mt.pool max, %x window = [3, 2] strides = [2, 2] padding = [1, 0, 0, 1] : tensor<?x6x7x3xf32>
  %1 = mt.pool_gradient max, %g at %x window = [3, 2] strides = [2, 2] padding = [1, 0, 0, 1]
      : tensor<?x3x4x3xf32>, tensor<?x6x7x3xf32> to tensor<?x6x7x3xf32>
  mt.yield %0, %1 : tensor<?x3x4x3xf32>, tensor<?x6x7x3xf32>)"));
}

struct Shape {
  int64_t height, width, channels, down, across, filters;
  std::string attributes;
  int64_t high, wide; // of the result
  int64_t groups = 1;
};

// A convolution with a bias and a residual, and both its gradients.
std::string convolution(const std::string &name, const Shape &shape, const std::string &element = "f32") {
  auto tensor = [](std::initializer_list<int64_t> sizes, bool rows, const std::string &element) {
    std::string text = rows ? "tensor<?x" : "tensor<";
    for (int64_t size : sizes)
      text += std::to_string(size) + "x";
    return text + element + ">";
  };
  auto images = [&](const std::string &element) {
    return tensor({shape.height, shape.width, shape.channels}, true, element);
  };
  auto kernel = [&](const std::string &element) {
    return tensor({shape.down, shape.across, shape.channels / shape.groups, shape.filters}, false, element);
  };
  auto result = [&](const std::string &element) {
    return tensor({shape.high, shape.wide, shape.filters}, true, element);
  };
  std::string x = images(element), w = kernel(element), g = result(element), y = result("f32"),
              b = tensor({shape.filters}, false, "f32");
  std::string how = " " + shape.attributes + " groups = " + std::to_string(shape.groups) + " : ";
  return kernelText(name + "_forward", "conv",
                    "^bb0(%x: " + x + ", %w: " + w + ", %b: " + b + ", %r: " + y + "):\n%0 = mt.conv2d %x, %w" + how +
                        x + ", " + w + "\n%1 = mt.add %0, %b : " + y + ", " + b + "\n%2 = mt.add %1, %r : " + y + ", " +
                        y + "\n%3 = mt.relu %2 : " + y + "\nmt.yield %3 : " + y) +
         kernelText(name + "_images", "conv",
                    "^bb0(%g: " + g + ", %w: " + w + "):\n%0 = mt.conv2d_input_gradient %g, %w" + how + g + ", " + w +
                        " to " + images("f32") + "\nmt.yield %0 : " + images("f32")) +
         kernelText(name + "_kernel", "conv_wgrad",
                    "^bb0(%x: " + x + ", %g: " + g + "):\n%0 = mt.conv2d_kernel_gradient %x, %g" + how + x + ", " + g +
                        " to " + kernel("f32") + "\nmt.yield %0 : " + kernel("f32"));
}

// Products of images: channels in fours and not, strides with and without taps for all, borders, groups; each tile.
TEST_F(Gpu, Convolutions) {
  expectEqual(convolution("pad", {6, 5, 8, 3, 3, 12, "padding = [1, 1, 1, 1]", 6, 5}) +
              convolution("odd", {7, 6, 3, 3, 2, 5, "strides = [2, 1] padding = [1, 1, 0, 1]", 4, 6}) +
              convolution("half", {6, 6, 12, 1, 1, 20, "strides = [2, 2] padding = [0, 0, 0, 0]", 3, 3}) +
              convolution("seven", {11, 10, 3, 7, 7, 8, "strides = [2, 2] padding = [3, 3, 3, 2]", 6, 5}) +
              convolution("apart", {9, 9, 4, 3, 3, 6, "padding = [1, 2, 0, 0] dilation = [2, 3]", 8, 3}) +
              convolution("groups", {5, 5, 16, 3, 3, 32, "padding = [1, 1, 1, 1]", 5, 5, 2}) +
              convolution("depthwise", {5, 5, 6, 3, 3, 6, "padding = [1, 1, 1, 1]", 5, 5, 6}));
  for (int64_t filters : {40, 72})
    expectEqual(convolution("large", {5, 4, 8, 3, 3, filters, "strides = [2, 2] padding = [1, 1, 1, 1]", 3, 2}), 3,
                false, 8, /*batch=*/1 << 16);
  // Shards that are cut, the last of them short.
  expectEqual(convolution("cut", {8, 8, 8, 3, 3, 12, "padding = [1, 1, 1, 1]", 8, 8}) +
                  convolution("halves", {9, 9, 3, 3, 3, 40, "strides = [2, 2] padding = [1, 1, 1, 1]", 5, 5}),
              9);
  expectEqual(convolution("fast", {8, 8, 8, 3, 3, 12, "padding = [1, 1, 1, 1]", 8, 8}), 9, /*fast=*/true);
  expectEqual(convolution("wide", {2, 2, 20, 3, 3, 136, "padding = [1, 1, 1, 1]", 2, 2}));
}

TEST_F(Gpu, LargeProducts) {
  for (int64_t columns : {60, 70, 200})
    expectEqual(dense(20, columns, false) + dense(33, columns, true), 3, false, 8, /*batch=*/1 << 20);
  expectEqual(gradient(700, 640) + gradient(1300, 1090));
  expectEqual(gradient(1300, 1090), 24, /*fast=*/true);
}

// The same tiles by tensor cores, and for the one architecture that has none for them.
TEST_F(Gpu, TensorCores) {
  precision = ", precision = tf32";
  for (int64_t columns : {10, 60, 200})
    expectEqual(dense(21, columns, columns == 60), 3, false, 8, /*batch=*/1 << 20);
  expectEqual(dense(37, 30, true) + gradient(40, 33) + gradient(130, 140) +
              convolution("pad", {6, 5, 8, 3, 3, 12, "padding = [1, 1, 1, 1]", 6, 5}) +
              convolution("half", {6, 6, 12, 3, 3, 40, "strides = [2, 2] padding = [0, 1, 0, 1]", 3, 3}));
  if (std::string why = whyNotAssembled(); !why.empty())
    GTEST_SKIP() << why;
  auto module = parse(dense(64, 256, false) + gradient(40, 33), 8, /*batch=*/1 << 20);
  ASSERT_TRUE(module);
  mtc::CodegenOptions options;
  options.gpus = {"sm_75", "sm_80", "sm_90"};
  auto codes = mtc::generateGpuCode(*module, options);
  ASSERT_TRUE(succeeded(codes));
  ASSERT_EQ(codes->size(), 4u);
  EXPECT_EQ(codes->back().features, std::vector<std::string>{"compute_80"});
  std::string ptx(codes->back().elf.begin(), codes->back().elf.end());
  for (const char *right : {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "cvt.rna.tf32.f32"})
    EXPECT_NE(ptx.find(right), std::string::npos) << right;
  for (const mtc::TargetCode &code : *codes)
    for (const mtc::KernelUsage &usage : code.usage)
      EXPECT_LE(usage.spillBytes, 8) << "kernel " << &usage - code.usage.data() << " for " << code.name;
}

// 16-bit operands: chunks of 16, 8, 4 bytes and single numbers, sides that are transposed and that are not.
TEST_F(Gpu, Halves) {
  for (std::string half : {"bf16", "f16"}) {
    precision = ", precision = " + half;
    for (int64_t columns : {10, 60, 200})
      expectEqual(dense(21, columns, columns == 60, half) + dense(72, columns, columns != 60, half), 3, false, 8,
                  /*batch=*/1 << 20);
    expectEqual(dense(37, 30, true, half) + dense(136, 34, false, half) + gradient(40, 33, half) +
                gradient(130, 140, half) + gradient(101, 24, half, 3) +
                convolution("pad", {6, 5, 8, 3, 3, 12, "padding = [1, 1, 1, 1]", 6, 5}, half) +
                convolution("deep", {4, 4, 64, 3, 3, 40, "padding = [1, 1, 1, 1]", 4, 4}, half) +
                convolution("half", {6, 6, 12, 3, 3, 40, "strides = [2, 2] padding = [0, 1, 0, 1]", 3, 3}, half));
  }
}

// The same by warpgroups: sides of all four kinds, chunks that pass through registers, ends of k inside of a panel.
TEST_F(Gpu, Warpgroups) {
  simulated = mtc::simulatedWarpgroupsName;
  constexpr int64_t large = 1 << 20; // a batch for which tiles are large
  precision = ", precision = f16";
  expectEqual(dense(72, 60, true, "f16") + gradient(130, 140, "f16"), 3, false, 8, large);
  precision = ", precision = bf16";
  expectEqual(dense(200, 136, false, "bf16") + dense(72, 136, true, "bf16") + dense(21, 60, true, "bf16"), 3, false, 8,
              large);
  expectEqual(gradient(330, 320, "bf16"));
  expectEqual(convolution("deep", {4, 4, 64, 3, 3, 72, "padding = [1, 1, 1, 1]", 4, 4}, "bf16") +
                  convolution("half", {6, 6, 12, 3, 3, 72, "strides = [2, 2] padding = [0, 1, 0, 1]", 3, 3}, "bf16"),
              3, false, 8, large);
}

// Rows that are more than workgroup memory: values are computed where they are read.
TEST_F(Gpu, LargeRows) {
  const char *window = " window = [2, 2] strides = [2, 2] padding = [0, 0, 0, 0] : ";
  std::string pools =
      std::string("^bb0(%x: tensor<?x40x40x12xf32>, %g: tensor<?x20x20x12xf32>, %b: tensor<12xf32>):\n") +
      "%0 = mt.add %x, %b : tensor<?x40x40x12xf32>, tensor<12xf32>\n"
      "%1 = mt.relu %0 : tensor<?x40x40x12xf32>\n"
      "%2 = mt.pool max, %1" +
      window +
      "tensor<?x40x40x12xf32>\n"
      "%3 = mt.pool_gradient max, %g at %1" +
      window +
      "tensor<?x20x20x12xf32>, tensor<?x40x40x12xf32> to tensor<?x40x40x12xf32>\n"
      "%4 = mt.mul %3, %0 : tensor<?x40x40x12xf32>, tensor<?x40x40x12xf32>\n";
  expectEqual(
      kernelText("elements", "rows", pools + "mt.yield %2, %4 : tensor<?x20x20x12xf32>, tensor<?x40x40x12xf32>"));
  expectEqual(kernelText("sums", "rows", pools + R"(%5 = mt.reduce sum, %4 over [1, 2] : tensor<?x40x40x12xf32>
  %6 = mt.reduce sum, %5 over [1] : tensor<?x12xf32>
  mt.yield %4, %5, %6 : tensor<?x40x40x12xf32>, tensor<?x12xf32>, tensor<?xf32>)"));
  // Many elements are as large; windows overlap.
  expectEqual(kernelText("overlap", "rows", R"(^bb0(%x: tensor<?x41x41x4xf32>, %g: tensor<?x20x20x4xf32>):
  %0 = mt.relu %x : tensor<?x41x41x4xf32>
  %1 = mt.pool_gradient max, %g at %0 window = [3, 3] strides = [2, 2] padding = [0, 0, 0, 0]
      : tensor<?x20x20x4xf32>, tensor<?x41x41x4xf32> to tensor<?x41x41x4xf32>
  mt.yield %1 : tensor<?x41x41x4xf32>)"));
  // A window of windows is kept.
  expectEqual(kernelText("nested", "rows", R"(^bb0(%x: tensor<?x20x20x12xf32>):
  %0 = mt.pool max, %x window = [3, 3] strides = [1, 1] padding = [1, 1, 1, 1] : tensor<?x20x20x12xf32>
  %1 = mt.tanh %0 : tensor<?x20x20x12xf32>
  %2 = mt.pool sum, %1 window = [2, 2] strides = [2, 2] padding = [0, 0, 0, 0] : tensor<?x20x20x12xf32>
  mt.yield %2 : tensor<?x10x10x12xf32>)"));
  // Windows of products are more than a block holds: the loop that reads them once computes them.
  expectEqual(kernelText("once", "rows", R"(^bb0(%x: tensor<?x120x8xf32>, %y: tensor<?x120x8xf32>):
  %0 = mt.matmul %x, %y transpose_b : tensor<?x120x8xf32>, tensor<?x120x8xf32>
  %1 = mt.reshape %0 : tensor<?x120x120xf32> to tensor<?x120x120x1xf32>
  %2 = mt.pool max, %1 window = [3, 3] strides = [1, 1] padding = [1, 1, 1, 1] : tensor<?x120x120x1xf32>
  %3 = mt.tanh %2 : tensor<?x120x120x1xf32>
  %4 = mt.mul %2, %3 : tensor<?x120x120x1xf32>, tensor<?x120x120x1xf32>
  mt.yield %4 : tensor<?x120x120x1xf32>)"));
}

// Windows of max pools that share taps, in the padding too, that leave some out, and that are too large for a cell; of
// elements of which many are as large, or no numbers.
TEST_F(Gpu, PoolCells) {
  for (auto [taps, stride, padding, high, wide] :
       {std::tuple("[3, 3]", "[2, 2]", "[1, 1, 1, 1]", 10, 11), std::tuple("[3, 3]", "[2, 2]", "[0, 0, 0, 0]", 9, 10),
        std::tuple("[3, 3]", "[1, 1]", "[1, 1, 1, 1]", 19, 21), std::tuple("[2, 3]", "[3, 1]", "[1, 1, 0, 2]", 7, 21),
        std::tuple("[3, 2]", "[2, 2]", "[0, 1, 1, 1]", 9, 11), std::tuple("[2, 2]", "[2, 2]", "[0, 0, 0, 0]", 9, 10),
        std::tuple("[1, 2]", "[2, 3]", "[0, 0, 0, 0]", 10, 7), std::tuple("[5, 5]", "[3, 3]", "[2, 2, 0, 1]", 7, 6)})
    for (std::string element : {"f32", "bf16"})
      for (std::string kind : {"relu", "sqrt"}) {
        std::string x = "tensor<?x19x21x4xf32>",
                    g = "tensor<?x" + std::to_string(high) + "x" + std::to_string(wide) + "x4x" + element + ">";
        expectEqual(kernelText("cells", "rows",
                               "^bb0(%x: " + x + ", %g: " + g + ", %b: tensor<4xf32>):\n%0 = mt." + kind +
                                   " %x : " + x + "\n%1 = mt.pool_gradient max, %g at %0 window = " + taps +
                                   " strides = " + stride + " padding = " + padding + " : " + g + ", " + x + " to " +
                                   x + "\n%2 = mt.mul %1, %b : " + x + ", tensor<4xf32>\n%3 = mt.mul %2, %x : " + x +
                                   ", " + x + "\nmt.yield %3, %1 : " + x + ", " + x));
      }
}

// A block for 64 or 32 columns of a row, few threads a column and many; blocks of neighbours, and the end of a segment.
const std::string columns = kernelText("columns", "rows", R"(^bb0(%x: tensor<?x19x3x64xf32>, %m: tensor<64xf32>):
  %0 = mt.sub %x, %m : tensor<?x19x3x64xf32>, tensor<64xf32>
  %1 = mt.square %0 : tensor<?x19x3x64xf32>
  %2 = mt.reduce sum, %1 over [1, 2] : tensor<?x19x3x64xf32>
  %3 = mt.reduce max, %0 over [1, 2] : tensor<?x19x3x64xf32>
  mt.yield %0, %2, %3 : tensor<?x19x3x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)") +
                            kernelText("long_columns", "rows", R"(^bb0(%x: tensor<?x41x41x32xf32>):
  %0 = mt.square %x : tensor<?x41x41x32xf32>
  %1 = mt.reduce sum, %0 over [1, 2] : tensor<?x41x41x32xf32>
  mt.yield %1 : tensor<?x32xf32>)");
const std::string halfColumns =
    kernelText("half_columns", "rows", R"(^bb0(%x: tensor<?x15x15x128xbf16>, %y: tensor<?x15x15x128xf32>,
      %m: tensor<128xf32>):
  %0 = mt.cast %x : tensor<?x15x15x128xbf16> to tensor<?x15x15x128xf32>
  %1 = mt.sub %0, %m : tensor<?x15x15x128xf32>, tensor<128xf32>
  %2 = mt.mul %1, %y : tensor<?x15x15x128xf32>, tensor<?x15x15x128xf32>
  %3 = mt.reduce sum, %2 over [1, 2] : tensor<?x15x15x128xf32>
  %4 = mt.cast %2 : tensor<?x15x15x128xf32> to tensor<?x15x15x128xbf16>
  mt.yield %3, %4 : tensor<?x128xf32>, tensor<?x15x15x128xbf16>)");
const std::string neighbours = kernelText("spread", "rows", R"(^bb0(%x: tensor<?x9x9x20xf32>, %m: tensor<20xf32>):
  %0 = mt.sub %x, %m : tensor<?x9x9x20xf32>, tensor<20xf32>
  mt.yield %0 : tensor<?x9x9x20xf32>)") +
                               kernelText("odd", "elementwise", R"(^bb0(%w: tensor<5003xf32>, %g: tensor<5003xf32>):
  %0 = mt.compare gt, %w, %g : tensor<5003xf32>, tensor<5003xf32>
  %1 = mt.select %0, %w, %g : tensor<5003xi1>, tensor<5003xf32>, tensor<5003xf32>
  %2 = mt.add %1, %g : tensor<5003xf32>, tensor<5003xf32>
  mt.yield %2 : tensor<5003xf32>)");

// Lines of fours and not, by a warp and by a block; a block's last rows; the first of the largest elements, of which
// there are many, or which are no numbers.
TEST_F(Gpu, LinesByWarp) {
  for (int64_t length : {4, 10, 96, 130, 1024, 1500, 1502}) {
    auto of = [&](const char *element) { return "tensor<?x" + std::to_string(length) + "x" + element + ">"; };
    std::string x = of("f32"), flags = of("i1"), gains = "tensor<" + std::to_string(length) + "xf32>";
    expectEqual(kernelText("normal", "rows",
                           "^bb0(%x: " + x + ", %g: " + gains + "):\n%0 = mt.reduce sum, %x over [1] : " + x +
                               "\n%1 = mt.reshape %0 : tensor<?xf32> to tensor<?x1xf32>\n%2 = mt.sub %x, %1 : " + x +
                               ", tensor<?x1xf32>\n%3 = mt.reduce max, %2 over [1] : " + x + "\n%4 = mt.mul %2, %g : " +
                               x + ", " + gains + "\nmt.yield %3, %4 : tensor<?xf32>, " + x) +
                kernelText("largest", "rows",
                           "^bb0(%x: " + x + ", %g: " + gains + "):\n%0 = mt.compare gt, %x, %g : " + x + ", " + gains +
                               "\n%1 = mt.cast %0 : " + flags + " to " + x + "\n%2 = mt.argmax %1 : " + x +
                               "\n%3 = mt.log %x : " + x + "\n%4 = mt.argmax %3 : " + x +
                               "\nmt.yield %0, %2, %4 : " + flags + ", tensor<?xi32>, tensor<?xi32>"));
  }
}

TEST_F(Gpu, ColumnsAndNeighbours) { expectEqual(columns + halfColumns + neighbours); }

TEST_F(Gpu, Sequences) {
  for (int64_t lines : {3, 40}) {
    std::string x = "tensor<?x" + std::to_string(lines) + "x7xf32>",
                y = "tensor<?x" + std::to_string(lines) + "x20xf32>";
    expectEqual(
        kernelText("product", "matmul",
                   "^bb0(%x: " + x + ", %w: tensor<7x20xf32>, %b: tensor<20xf32>, %r: " + y +
                       "):\n%0 = mt.matmul %x, %w : " + x + ", tensor<7x20xf32>\n%1 = mt.add %0, %b : " + y +
                       ", tensor<20xf32>\n%2 = mt.mul %1, %r : " + y + ", " + y + "\nmt.yield %2 : " + y) +
        kernelText("gradient", "matmul_wgrad",
                   "^bb0(%x: " + x + ", %g: " + y + "):\n%0 = mt.matmul %x, %g transpose_a : " + x + ", " + y +
                       "\n%1 = mt.reduce sum, %0 over [0] : tensor<?x7x20xf32>\nmt.yield %1 : tensor<7x20xf32>"));
  }
}

// No contraction, no approximation, no flushed denormals, no calls.
TEST_F(Gpu, PtxRoundsAsWritten) {
  auto module = parse(rowsOf10 + longRows + line + dense(37, 10, false) + gradient(40, 33));
  ASSERT_TRUE(module);
  mtc::CodegenOptions options;
  options.gpus = {"sm_75"};
  auto codes = mtc::generateGpuCode(*module, options);
  ASSERT_TRUE(succeeded(codes));
  const mtc::TargetCode &last = codes->back();
  EXPECT_EQ(last.name, "cuda:ptx");
  EXPECT_EQ(last.device, "cuda");
  EXPECT_EQ(last.features, std::vector<std::string>{"compute_75"});
  std::string ptx(last.elf.begin(), last.elf.end());
  for (const char *wrong : {".ftz", ".approx", "add.f32", "mul.f32", "sub.f32", "div.full", "call"})
    EXPECT_EQ(ptx.find(wrong), std::string::npos)
        << wrong << " at " << ptx.substr(std::min(ptx.find(wrong), ptx.size()), 60);
  for (const char *right :
       {".target sm_75", "add.rn.f32", "fma.rn.f32", "div.rn.f32", "ld.shared", "ld.global", "bar.sync", ".reqntid"})
    EXPECT_NE(ptx.find(right), std::string::npos) << right;
}

TEST_F(Gpu, AssemblesWithoutSpills) {
  if (std::string why = whyNotAssembled(); !why.empty())
    GTEST_SKIP() << why;
  auto module = parse(rowsOf10 + longRows + line + whole + update + dense(37, 10, false) + dense(50, 100, true) +
                      gradient(40, 33) + sums + transpose + columns + neighbours);
  ASSERT_TRUE(module);
  mtc::CodegenOptions options;
  options.gpus = {"sm_120", "sm_75"};
  auto codes = mtc::generateGpuCode(*module, options);
  ASSERT_TRUE(succeeded(codes));
  ASSERT_EQ(codes->size(), 3u);
  EXPECT_EQ((*codes)[0].name, "cuda:sm_75");
  EXPECT_EQ((*codes)[1].name, "cuda:sm_120");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*codes)[i].usage.size(), 15u);
    for (const mtc::KernelUsage &usage : (*codes)[i].usage) {
      EXPECT_GT(usage.registers, 0);
      EXPECT_LE(usage.spillBytes, 8) << "kernel " << &usage - (*codes)[i].usage.data() << " for " << (*codes)[i].name;
    }
  }
}

} // namespace
