// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of products keep their sums in registers: no instruction of a loop with many FMAs touches vectors on
// the stack.
#include "test/unit/codegen/Harness.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <unistd.h>

using namespace codegentest;

namespace {

struct Instruction {
  uint64_t address;
  std::string text;
};

std::vector<Instruction> disassemble(const std::vector<char> &image) {
  std::string path = testing::TempDir() + "/kernels-" + std::to_string(getpid()) + ".so";
  std::ofstream(path, std::ios::binary).write(image.data(), image.size());
  std::string command = "/usr/lib/llvm-22/bin/llvm-objdump -d --no-show-raw-insn " + path;
  FILE *pipe = popen(command.c_str(), "r");
  std::vector<Instruction> code;
  char line[512];
  while (pipe && fgets(line, sizeof(line), pipe)) {
    char *end;
    uint64_t address = std::strtoull(line, &end, 16);
    if (*end == ':' && end[1] != '\n')
      code.push_back({address, end + 1});
  }
  if (pipe)
    pclose(pipe);
  unlink(path.c_str());
  return code;
}

bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

struct Loops {
  int products = 0, spilled = 0;
  double maxLocals = 0; // vectors on the stack, an FMA
  std::string example;
};

// Loops without loops inside, with at least eight FMAs.
Loops inspect(const std::vector<Instruction> &code) {
  std::map<uint64_t, size_t> at;
  for (size_t i = 0; i < code.size(); ++i)
    at[code[i].address] = i;
  Loops loops;
  size_t lastJump = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    std::istringstream words(code[i].text);
    std::string name, target;
    words >> name >> target;
    if (name.empty() || name[0] != 'j')
      continue;
    auto start = at.find(std::strtoull(target.c_str(), nullptr, 16));
    if (start == at.end() || start->second > i)
      continue;
    bool inner = start->second >= lastJump;
    lastJump = i;
    int products = 0, locals = 0;
    std::string spill;
    bool frame = true; // a loop that moves the register has a pointer in it
    for (size_t j = start->second; j <= i; ++j)
      frame &= !has(code[j].text, ", %rbp");
    for (size_t j = start->second; j <= i; ++j) {
      products += has(code[j].text, "vfmadd");
      // Below a frame's base lie locals; at other places a function without a frame has data.
      bool local = has(code[j].text, "(%rsp") || (frame && has(code[j].text, "-0x") && has(code[j].text, "(%rbp)"));
      if (has(code[j].text, "\tv") && local) {
        spill = code[j].text;
        ++locals;
      }
    }
    if (!inner || products < 8)
      continue;
    ++loops.products;
    loops.maxLocals = std::max(loops.maxLocals, double(locals) / products);
    if (!spill.empty()) {
      ++loops.spilled;
      loops.example = spill;
    }
  }
  return loops;
}

std::string products() {
  std::string text;
  for (int columns : {10, 48, 100, 256}) {
    std::string n = std::to_string(columns), w = "tensor<128x" + n + "xf32>", y = "tensor<?x" + n + "xf32>",
                x = "tensor<?x128xf32>";
    text += kernelText("f" + n, "matmul",
                       "^bb0(%x: " + x + ", %w: " + w + "):\n%0 = mt.matmul %x, %w : " + x + ", " + w +
                           "\nmt.yield %0 : " + y);
    text += kernelText("g" + n, "matmul_wgrad",
                       "^bb0(%x: " + x + ", %y: " + y + "):\n%0 = mt.matmul %x, %y transpose_a : " + x + ", " + y +
                           "\nmt.yield %0 : " + w);
  }
  return text;
}

TEST(Spills, NoInnerLoopOfAProductTouchesTheStack) {
  for (auto &code : compile(products(), {12, 8, false})) {
    Loops loops = inspect(disassemble(code->image));
    EXPECT_GE(loops.products, 6) << code->target;
    EXPECT_EQ(loops.spilled, 0) << code->target << " " << loops.products << " loops: " << loops.example;
  }
}

// Of the 8 shards of 4 samples that a tile sums without branches, nodes of two and of four shards wait on the stack: 3
// stores and 3 loads of a vector for 32 FMAs.
TEST(Spills, TilesOfWholeTreesKeepNodesOfShardsOnTheStackAndNothingElse) {
  for (auto &code : compile(products(), {4, 8, false}))
    EXPECT_LE(inspect(disassemble(code->image)).maxLocals, 6.0 / 32) << code->target;
}

// Few channels: tiles that share what neighbouring positions read, and kernel gradients with vectors along the taps.
TEST(Spills, NoInnerLoopOfAConvolutionTouchesTheStack) {
  struct Shape {
    int size, channels, taps, stride, filters;
  };
  std::string text;
  for (Shape s : {Shape{34, 16, 3, 1, 16},
                  {18, 32, 3, 1, 32},
                  {28, 12, 6, 2, 24},
                  {16, 24, 6, 2, 32},
                  {30, 1, 3, 1, 12},
                  {18, 64, 3, 1, 64}}) {
    auto number = [](int value) { return std::to_string(value); };
    std::string name = number(s.channels) + "_" + number(s.filters), step = number(s.stride),
                out = number((s.size - s.taps) / s.stride + 1);
    std::string x = "tensor<?x" + number(s.size) + "x" + number(s.size) + "x" + number(s.channels) + "xf32>";
    std::string y = "tensor<?x" + out + "x" + out + "x" + number(s.filters) + "xf32>";
    std::string w = "tensor<" + number(s.taps) + "x" + number(s.taps) + "x" + number(s.channels) + "x" +
                    number(s.filters) + "xf32>";
    std::string window =
        " strides = [" + step + ", " + step + "] padding = [0, 0, 0, 0] dilation = [1, 1] groups = 1 : ";
    text += kernelText("f" + name, "conv",
                       "^bb0(%x: " + x + ", %w: " + w + "):\n%0 = mt.conv2d %x, %w" + window + x + ", " + w +
                           "\nmt.yield %0 : " + y);
    text += kernelText("i" + name, "conv",
                       "^bb0(%y: " + y + ", %w: " + w + "):\n%0 = mt.conv2d_input_gradient %y, %w" + window + y + ", " +
                           w + " to " + x + "\nmt.yield %0 : " + x);
    text += kernelText("k" + name, "conv_wgrad",
                       "^bb0(%x: " + x + ", %y: " + y + "):\n%0 = mt.conv2d_kernel_gradient %x, %y" + window + x +
                           ", " + y + " to " + w + "\nmt.yield %0 : " + w);
  }
  for (auto &code : compile(text, {4, 8, false})) {
    Loops loops = inspect(disassemble(code->image));
    EXPECT_GE(loops.products, 12) << code->target;
    EXPECT_EQ(loops.spilled, 0) << code->target << " " << loops.products << " loops: " << loops.example;
  }
}

} // namespace
