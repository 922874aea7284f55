// SPDX-License-Identifier: Apache-2.0
//
// What a reader verifies of library calls: sizes of the call, and of the buffers of launches.
#include "Corrupt.h"
#include "TestPlan.h"

#include "runtime/plan/Calls.h"
#include "runtime/plan/Plan.h"

#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

// predict_rows is x . w + b: buffers shape, x, w, b, result.
fb::LibraryCallT &addCall(fb::PlanT &plan) {
  fb::KernelT &kernel = *plan.kernels[1];
  kernel.gpu = std::make_unique<fb::GpuGridT>();
  kernel.gpu->threads = 32;
  kernel.gpu->call = std::make_unique<fb::LibraryCallT>();
  fb::LibraryCallT &call = *kernel.gpu->call;
  call.kind = fb::CallKind::Product;
  call.epilogue = fb::CallEpilogue::Bias;
  call.left = 1;
  call.right = 2;
  call.bias = 3;
  call.result = 4;
  call.lines = call.columns = 1;
  call.depth = 37;
  plan.call_workspace = 1 << 20;
  return call;
}

Status load(void (*change)(fb::LibraryCallT &)) {
  std::vector<uint8_t> bytes = makePlan({}, [&](fb::PlanT &plan) { change(addCall(plan)); });
  std::unique_ptr<Plan> plan;
  return Plan::loadMemory(bytes.data(), bytes.size(), plan);
}

TEST(Calls, AGoodOneLoads) {
  Status status = load([](fb::LibraryCallT &) {});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Calls, FaultsAreRefused) {
  struct {
    const char *message;
    void (*change)(fb::LibraryCallT &);
  } cases[] = {
      {"library call: expected a kind of call", [](fb::LibraryCallT &c) { c.kind = fb::CallKind(9); }},
      {"library call: expected a kind of call", [](fb::LibraryCallT &c) { c.math = fb::CallMath(7); }},
      {"library call: expected a kind of call", [](fb::LibraryCallT &c) { c.epilogue = fb::CallEpilogue(-1); }},
      {"expected a bias where the epilogue has one", [](fb::LibraryCallT &c) { c.bias = -1; }},
      {"expected a bias where the epilogue has one", [](fb::LibraryCallT &c) { c.epilogue = fb::CallEpilogue::Relu; }},
      {"no epilogue of a sum", [](fb::LibraryCallT &c) { c.kind = fb::CallKind::ProductTree; }},
      {"expected sizes that fit each other", [](fb::LibraryCallT &c) { c.depth = 0; }},
      {"expected sizes that fit each other", [](fb::LibraryCallT &c) { c.lines = c.columns = uint64_t{1} << 30; }},
      {"expected sizes that fit each other", [](fb::LibraryCallT &c) { c.columns = ~uint64_t{0}; }},
      {"expected sizes that fit each other", [](fb::LibraryCallT &c) { c.kind = fb::CallKind::Convolution; }},
      {"expected a left operand of 152 bytes per row, found 148", [](fb::LibraryCallT &c) { c.depth = 38; }},
      {"expected a left operand below 5, found 5", [](fb::LibraryCallT &c) { c.left = 5; }},
      {"expected a right operand of 148 bytes, found 0", [](fb::LibraryCallT &c) { c.right = 1; }},
      {"expected a result of 4 bytes per row, found 0", [](fb::LibraryCallT &c) { c.result = 3; }},
      {"expected a bias below 5, found 6", [](fb::LibraryCallT &c) { c.bias = 6; }},
  };
  for (const auto &c : cases) {
    expectCorrupt(load(c.change), c.message);
  }
}

// The sizes of a convolution's three kinds, and what its axes may not be.
TEST(Calls, SizesOfConvolutions) {
  fb::LibraryCallT table;
  table.down = std::make_unique<fb::CallAxis>(14, 7, 3, 2, 1, 1, 0);
  table.across = std::make_unique<fb::CallAxis>(14, 13, 3, 1, 2, 2, 1);
  table.channels = 4;
  table.filters = 8;
  table.groups = 2;
  auto sizesOf = [&](fb::CallKind kind, CallSizes &sizes) {
    table.kind = kind;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::LibraryCall::Pack(builder, &table));
    return callSizes(*flatbuffers::GetRoot<fb::LibraryCall>(builder.GetBufferPointer()), "call", sizes);
  };
  const uint64_t images = 14 * 14 * 4, outputs = 7 * 13 * 8, kernel = 3 * 3 * 2 * 8;
  CallSizes sizes;
  ASSERT_TRUE(sizesOf(fb::CallKind::Convolution, sizes).ok());
  EXPECT_TRUE(sizes.left == images && sizes.right == kernel && sizes.result == outputs && !sizes.rightRows);
  ASSERT_TRUE(sizesOf(fb::CallKind::ConvolutionInput, sizes).ok());
  EXPECT_TRUE(sizes.left == outputs && sizes.right == kernel && sizes.result == images && sizes.resultRows);
  ASSERT_TRUE(sizesOf(fb::CallKind::ConvolutionTree, sizes).ok());
  EXPECT_TRUE(sizes.left == images && sizes.right == outputs && sizes.result == kernel && !sizes.resultRows);
  table.groups = 3;
  EXPECT_FALSE(sizesOf(fb::CallKind::Convolution, sizes).ok());
  table.groups = 2;
  for (fb::CallAxis axis : {fb::CallAxis(14, 8, 3, 2, 1, 1, 0), fb::CallAxis(14, 7, 3, 2, 1, 3, 0),
                            fb::CallAxis(14, 7, 0, 2, 1, 1, 0), fb::CallAxis(14, 7, 3, 0, 1, 1, 0),
                            fb::CallAxis(0x80000000u, 7, 3, 2, 1, 1, 0), fb::CallAxis(1, 1, 3, 1, 1, 0, 0)}) {
    table.down = std::make_unique<fb::CallAxis>(axis);
    EXPECT_FALSE(sizesOf(fb::CallKind::Convolution, sizes).ok());
  }
}

} // namespace
} // namespace mtrun::test
