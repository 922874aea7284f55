// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients: each element is the chain and the tree that dialects/mt/MtSpatial.td names, to the
// bit.
#include "test/unit/codegen/ConvReference.h"
#include "test/unit/codegen/Expected.h"
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

// Odd sizes, each attribute apart and together, more than one panel, more than one block, first layers.
const std::vector<ConvolutionShape> shapes = {
    {28, 28, 1, 3, 3, 12, {1, 1}, {1, 1, 1, 1}},
    {13, 13, 12, 6, 6, 24, {2, 2}},
    {12, 12, 24, 6, 6, 32, {2, 2}, {2, 2, 2, 2}},
    {7, 9, 5, 3, 2, 17, {2, 1}, {1, 0, 0, 1}},
    {11, 5, 3, 3, 3, 70, {1, 1}, {2, 0, 1, 1}, {2, 1}},
    {8, 8, 64, 3, 3, 64, {1, 1}, {1, 1, 1, 1}},
    {4, 4, 33, 1, 1, 100},
    {6, 6, 9, 1, 1, 20, {2, 2}},
    {10, 10, 12, 3, 3, 18, {2, 2}, {0, 1, 0, 1}, {1, 1}, 3},
    {9, 7, 20, 3, 3, 20, {1, 1}, {1, 1, 1, 1}, {1, 1}, 20},
    {5, 6, 6, 2, 3, 12, {1, 2}, {1, 0, 1, 1}, {1, 1}, 6},
    {1, 300, 3, 1, 5, 8, {1, 1}, {0, 0, 2, 2}},
    {17, 15, 2, 4, 3, 130, {3, 2}, {1, 2, 1, 0}, {1, 2}},
    {2, 2, 16, 2, 2, 16},
    {9, 9, 2, 1, 1, 3, {3, 3}, {0, 0, 0, 0}},
    {3, 3, 200, 3, 3, 33, {1, 1}, {1, 1, 1, 1}},
    {4, 257, 2, 3, 3, 5, {1, 1}, {1, 1, 1, 1}},
    {9, 8, 70, 3, 3, 70, {2, 2}, {0, 1, 1, 0}, {1, 1}, 70},
    {3, 200, 700, 2, 2, 700, {1, 1}, {1, 0, 1, 0}, {1, 1}, 700},
    {9, 20, 16, 3, 3, 16, {1, 1}, {1, 1, 1, 1}},
    {19, 17, 5, 1, 1, 7},
    {18, 16, 3, 1, 1, 80},
    {4, 40, 16, 3, 3, 14},
    {21, 17, 9, 3, 5, 10, {2, 1}, {1, 1, 2, 2}, {1, 2}},
    {3, 3, 280, 3, 3, 70, {1, 1}, {1, 1, 1, 1}},
    // Adjacent pixels of the gradient to the images that read the same elements.
    {8, 12, 12, 4, 4, 24, {2, 2}},
    {5, 9, 5, 2, 3, 40, {1, 3}, {0, 1, 2, 1}},
    // By tiles of positions: odd sizes, more than one block, panel and window of channels, few channels.
    {7, 7, 16, 3, 3, 24, {1, 1}, {1, 1, 1, 1}},
    {14, 13, 48, 3, 3, 80, {1, 1}, {2, 0, 1, 1}},
    {6, 9, 144, 3, 3, 17},
    {5, 300, 16, 3, 3, 16, {1, 1}, {1, 1, 1, 1}},
    {6, 264, 16, 3, 3, 32},
    {33, 32, 80, 3, 3, 16, {1, 1}, {0, 1, 2, 2}},
    // The most channels, and more: one direction or both by the chain.
    {4, 4, 1024, 3, 3, 16, {1, 1}, {1, 1, 1, 1}},
    {4, 4, 1040, 3, 3, 16, {1, 1}, {1, 1, 1, 1}},
};

std::string list(const int64_t *numbers, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}
std::string attributes(const ConvolutionShape &s) {
  return " strides = " + list(s.stride, 2) + " padding = " + list(s.padding, 4) + " dilation = " + list(s.dilation, 2) +
         " groups = " + std::to_string(s.groups) + " : ";
}
std::string tensor(const std::string &first, int64_t a, int64_t b, int64_t c) {
  return "tensor<" + first + "x" + std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(c) + "xf32>";
}
std::string images(const ConvolutionShape &s) { return tensor("?", s.h, s.w, s.c); }
std::string outputs(const ConvolutionShape &s) { return tensor("?", s.oh(), s.ow(), s.f); }
std::string kernel(const ConvolutionShape &s) { return tensor(std::to_string(s.kh), s.kw, s.c / s.groups, s.f); }

class Conv : public testing::TestWithParam<size_t> {};

TEST_P(Conv, EqualsTheChain) {
  const ConvolutionShape &s = shapes[GetParam()];
  auto codes = compile(kernelText("forward", "conv",
                                  "^bb0(%x: " + images(s) + ", %w: " + kernel(s) + "):\n%0 = mt.conv2d %x, %w" +
                                      attributes(s) + images(s) + ", " + kernel(s) + "\nmt.yield %0 : " + outputs(s)));
  std::vector<float> w = randoms(s.kernel(), 2);
  Guarded weights = guarded(w), early = guarded(w, /*atEnd=*/false);
  for (int64_t rows : {1, 3}) {
    std::vector<float> x = randoms(rows * s.images(), rows), expected(rows * s.outputs());
    for (int64_t n = 0; n < rows; ++n)
      forward(s, &x[n * s.images()], w.data(), &expected[n * s.outputs()]);
    Guarded input = guarded(x), inputEarly = guarded(x, /*atEnd=*/false);
    for (auto &code : codes)
      for (int64_t shares : {1, 2, 5}) {
        Guarded output(expected.size() * 4);
        bool odd = shares % 2;
        code->run("forward", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                  {(odd ? input : inputEarly).as<void>(), (odd ? weights : early).as<void>(), output.as<void>()},
                  shares);
        expectBits(output.as<float>(), expected, code->target + " rows " + std::to_string(rows));
      }
  }
}

TEST_P(Conv, InputGradientEqualsTheChain) {
  const ConvolutionShape &s = shapes[GetParam()];
  auto codes = compile(kernelText("gradient", "conv",
                                  "^bb0(%y: " + outputs(s) + ", %w: " + kernel(s) +
                                      "):\n%0 = mt.conv2d_input_gradient %y, %w" + attributes(s) + outputs(s) + ", " +
                                      kernel(s) + " to " + images(s) + "\nmt.yield %0 : " + images(s)));
  std::vector<float> w = randoms(s.kernel(), 2);
  Guarded weights = guarded(w);
  int64_t rows = 2;
  std::vector<float> dy = randoms(rows * s.outputs(), 5), expected(rows * s.images());
  for (int64_t n = 0; n < rows; ++n)
    inputGradient(s, &dy[n * s.outputs()], w.data(), &expected[n * s.images()]);
  Guarded input = guarded(dy), inputEarly = guarded(dy, /*atEnd=*/false);
  for (auto &code : codes)
    for (int64_t shares : {1, 3}) {
      Guarded output(expected.size() * 4);
      code->run("gradient", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                {(shares == 1 ? input : inputEarly).as<void>(), weights.as<void>(), output.as<void>()}, shares);
      expectBits(output.as<float>(), expected, code->target);
    }
}

TEST_P(Conv, KernelGradientEqualsTheTree) {
  const ConvolutionShape &s = shapes[GetParam()];
  std::string text = kernelText("tree", "conv_wgrad",
                                "^bb0(%x: " + images(s) + ", %y: " + outputs(s) +
                                    "):\n%0 = mt.conv2d_kernel_gradient %x, %y" + attributes(s) + images(s) + ", " +
                                    outputs(s) + " to " + kernel(s) + "\nmt.yield %0 : " + kernel(s));
  for (bool fast : {false, true}) {
    int64_t shardRows = 2;
    auto codes = compile(text, {shardRows, 8, fast});
    for (int64_t rows : {1, 7}) {
      std::vector<float> x = randoms(rows * s.images(), 3), dy = randoms(rows * s.outputs(), 4);
      int64_t shard = fast ? rows : shardRows, used = (rows + shard - 1) / shard;
      std::vector<std::vector<float>> shards(used, std::vector<float>(s.kernel()));
      for (int64_t i = 0; i < used; ++i) {
        int64_t first = i * shard, samples = std::min(shard, rows - first);
        kernelGradient(s, samples, &x[first * s.images()], &dy[first * s.outputs()], shards[i].data());
      }
      std::vector<float> expected(s.kernel());
      for (int64_t i = 0; i < s.kernel(); ++i)
        expected[i] = tree(0, fast ? 1 : 8, used, [&](int64_t index) { return shards[index][i]; });
      Guarded gx = guarded(x), gy = guarded(dy);
      for (auto &code : codes)
        for (int64_t shares : {1, 4}) {
          Guarded out(expected.size() * 4);
          code->run("tree", {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, {gx.as<void>(), gy.as<void>(), out.as<void>()},
                    shares);
          expectBits(out.as<float>(), expected, code->target + " rows " + std::to_string(rows));
        }
    }
  }
}

// The image of a step stays in the kernel; the kernel's gradient is each sample's own.
TEST_P(Conv, StepsOfRowsEqualTheChain) {
  const ConvolutionShape &s = shapes[GetParam()];
  bool forward = s.groups == 1 && s.kernel() < 1 << 16;
  std::string each = "tensor<?x" + kernel(s).substr(7), bias = "tensor<" + std::to_string(s.f) + "xf32>";
  std::string text = "^bb0(%x: " + images(s) + ", %w: " + kernel(s) + ", %b: " + bias + ", %y: " + outputs(s) + "):\n";
  if (forward)
    text += "%0 = mt.conv2d %x, %w" + attributes(s) + images(s) + ", " + kernel(s) +
            "\n%1 = mt.add %0, %b : " + outputs(s) + ", " + bias + "\n%2 = mt.relu %1 : " + outputs(s) +
            "\n%3 = mt.add %2, %y : " + outputs(s) + ", " + outputs(s) + "\n";
  std::string made = forward ? "%3" : "%y";
  text += "%4 = mt.conv2d_kernel_gradient %x, " + made + attributes(s) + images(s) + ", " + outputs(s) + " to " + each +
          "\nmt.yield %4" + (forward ? ", %3" : "") + " : " + each + (forward ? ", " + outputs(s) : "");
  auto codes = compile(kernelText("steps", "rows", text));
  int64_t rows = 3;
  std::vector<float> x = randoms(rows * s.images(), 1), w = randoms(s.kernel(), 2), b = randoms(s.f, 3),
                     y = randoms(rows * s.outputs(), 4), dw(rows * s.kernel());
  if (forward) {
    std::vector<float> z(y.size());
    for (int64_t n = 0; n < rows; ++n)
      codegentest::forward(s, &x[n * s.images()], w.data(), &z[n * s.outputs()]);
    for (size_t i = 0; i < z.size(); ++i)
      z[i] = std::max(z[i] + b[i % s.f], 0.0f) + y[i];
    std::swap(y, z);
  }
  std::vector<float> added = randoms(rows * s.outputs(), 4);
  for (int64_t n = 0; n < rows; ++n)
    kernelGradient(s, 1, &x[n * s.images()], &y[n * s.outputs()], &dw[n * s.kernel()]);
  Guarded gx = guarded(x), gw = guarded(w), gb = guarded(b), gy = guarded(added);
  for (auto &code : codes)
    for (int64_t shares : {1, 2}) {
      Guarded sums(dw.size() * 4), image(y.size() * 4);
      std::vector<void *> buffers{gx.as<void>(), gw.as<void>(), gb.as<void>(), gy.as<void>(), sums.as<void>()};
      if (forward)
        buffers.push_back(image.as<void>());
      code->run("steps", {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, buffers, shares);
      expectBits(sums.as<float>(), dw, code->target);
      if (forward)
        expectBits(image.as<float>(), y, code->target);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv, testing::Range<size_t>(0, shapes.size()));

TEST(ConvEpilogue, RunsOnTheResult) {
  ConvolutionShape s{6, 5, 3, 3, 3, 21, {1, 1}, {1, 1, 1, 1}};
  auto codes = compile(
      kernelText("forward", "conv",
                 "^bb0(%x: " + images(s) + ", %w: " + kernel(s) + ", %b: tensor<21xf32>, %r: " + outputs(s) +
                     ", %s: tensor<f32>):\n%0 = mt.conv2d %x, %w" + attributes(s) + images(s) + ", " + kernel(s) +
                     "\n%1 = mt.add %0, %b : " + outputs(s) + ", tensor<21xf32>\n%2 = mt.mul %1, %s : " + outputs(s) +
                     ", tensor<f32>\n%3 = mt.add %2, %r : " + outputs(s) + ", " + outputs(s) +
                     "\n%4 = mt.relu %3 : " + outputs(s) + "\nmt.yield %4, %1 : " + outputs(s) + ", " + outputs(s)));
  int64_t rows = 2;
  std::vector<float> x = randoms(rows * s.images(), 1), w = randoms(s.kernel(), 2), b = randoms(s.f, 3),
                     r = randoms(rows * s.outputs(), 4), scale{0.5f}, first(rows * s.outputs()), second;
  for (int64_t n = 0; n < rows; ++n)
    forward(s, &x[n * s.images()], w.data(), &first[n * s.outputs()]);
  for (size_t i = 0; i < first.size(); ++i) {
    first[i] += b[i % s.f];
    float sum = first[i] * 0.5f;
    sum += r[i];
    second.push_back(sum > 0 ? sum : 0);
  }
  Guarded gx = guarded(x), gw = guarded(w), gb = guarded(b), gr = guarded(r), gs = guarded(scale);
  for (auto &code : codes) {
    Guarded relu(second.size() * 4), bias(first.size() * 4);
    code->run(
        "forward", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
        {gx.as<void>(), gw.as<void>(), gb.as<void>(), gr.as<void>(), gs.as<void>(), relu.as<void>(), bias.as<void>()},
        3);
    expectBits(relu.as<float>(), second, code->target);
    expectBits(bias.as<float>(), first, code->target);
  }
}

// Also with adjacent pixels that are computed together, and an operand with one element per channel.
TEST(ConvEpilogue, RunsOnTheGradientToTheImages) {
  for (int64_t channels : {3, 12, 16}) {
    ConvolutionShape s{6, 8, channels, 4, 4, 5, {2, 2}, {1, 1, 1, 1}};
    std::string bias = "tensor<" + std::to_string(channels) + "xf32>";
    auto codes = compile(
        kernelText("gradient", "conv",
                   "^bb0(%y: " + outputs(s) + ", %w: " + kernel(s) + ", %b: " + bias + ", %r: " + images(s) +
                       "):\n%0 = mt.conv2d_input_gradient %y, %w" + attributes(s) + outputs(s) + ", " + kernel(s) +
                       " to " + images(s) + "\n%1 = mt.add %0, %b : " + images(s) + ", " + bias +
                       "\n%2 = mt.mul %1, %r : " + images(s) + ", " + images(s) + "\nmt.yield %2 : " + images(s)));
    int64_t rows = 2;
    std::vector<float> y = randoms(rows * s.outputs(), 1), w = randoms(s.kernel(), 2), b = randoms(channels, 3),
                       r = randoms(rows * s.images(), 4), expected(rows * s.images());
    for (int64_t n = 0; n < rows; ++n)
      inputGradient(s, &y[n * s.outputs()], w.data(), &expected[n * s.images()]);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = (expected[i] + b[i % channels]) * r[i];
    Guarded gy = guarded(y), gw = guarded(w), gb = guarded(b), gr = guarded(r);
    for (auto &code : codes) {
      Guarded out(expected.size() * 4);
      code->run("gradient", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                {gy.as<void>(), gw.as<void>(), gb.as<void>(), gr.as<void>(), out.as<void>()}, 3);
      expectBits(out.as<float>(), expected, code->target + " channels " + std::to_string(channels));
    }
  }
}

} // namespace
