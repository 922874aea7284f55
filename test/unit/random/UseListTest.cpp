// SPDX-License-Identifier: Apache-2.0
//
// A model that was imported to text needed up to twice the memory of the same model, compiled at once: passes followed
// the lists of uses, whose order no text holds. Here every pass meets lists that were shuffled, and must leave the same
// text. A fixed sample by default;
//   MTC_RANDOM_GRAPHS=200 MTC_RANDOM_SEED=1 build/release/test/unit/useListsTests
#include "compiler/Pipeline.h"
#include "dialects/mt/Compilation.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "test/unit/random/RandomModel.h"
#include "gtest/gtest.h"

#include <numeric>
#include <random>

using namespace mlir;
using namespace mtc::test;

namespace {

const uint32_t graphs = fromEnvironment("MTC_RANDOM_GRAPHS", 4), first = fromEnvironment("MTC_RANDOM_SEED", 1);

void shuffle(Value value, std::mt19937 &random) {
  SmallVector<unsigned> order(std::distance(value.use_begin(), value.use_end()));
  if (order.size() < 2)
    return;
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  value.shuffleUseList(order);
}

void shuffleUseLists(Operation *root, std::mt19937 &random) {
  root->walk([&](Operation *op) {
    for (Value result : op->getResults())
      shuffle(result, random);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          shuffle(argument, random);
  });
}

std::string textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().enableDebugInfo().useLocalScope());
  return text;
}

// What each pass left, and the plan.
struct Trace {
  std::vector<std::pair<std::string, std::string>> passes;
  std::vector<uint8_t> plan;
};

struct Recorder : PassInstrumentation {
  Recorder(Trace &trace, std::mt19937 *random) : trace(trace), random(random) {}
  void runBeforePass(Pass *, Operation *op) override {
    if (random)
      shuffleUseLists(op, *random);
  }
  void runAfterPass(Pass *pass, Operation *op) override { trace.passes.emplace_back(pass->getName(), textOf(op)); }
  Trace &trace;
  std::mt19937 *random; // null: lists stay as they are
};

class UseLists : public testing::Test {
protected:
  UseLists() : context(registry(), MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }
  static DialectRegistry registry() {
    DialectRegistry dialects;
    mtc::registerDialects(dialects);
    return dialects;
  }

  // Some with kernels that run twice, some in 16 bits.
  Trace compile(const RandomModel &model, OwningOpRef<ModuleOp> module, uint32_t seed, std::mt19937 *random) {
    const mtc::Step &step = model.step;
    mt::Compilation parameters(*module);
    parameters.setBatch(step.batch);
    parameters.setShards(step.shards, (step.batch + step.shards - 1) / step.shards);
    parameters.setSeed(step.seed);
    parameters.setName("random");
    if (seed % 4 == 1)
      parameters.setPrecision("bf16");
    mtc::Compilation compilation;
    compilation.cpus = {"x86-64-v3"};
    compilation.options.recompute = seed % 4 == 2 ? "auto" : "none";
    compilation.options.device_memory = seed % 4 == 2;
    Trace trace;
    for (const mtc::Stage &stage : mtc::stages()) {
      if (StringRef(stage.name) == "schedule")
        compilation.options.device_memory = 0;
      PassManager passes(&context, ModuleOp::getOperationName(), OpPassManager::Nesting::Explicit);
      passes.addInstrumentation(std::make_unique<Recorder>(trace, random));
      stage.build(passes, compilation);
      EXPECT_TRUE(succeeded(passes.run(*module)) && succeeded(stage.check(*module))) << seed << " " << stage.name;
    }
    trace.plan = std::move(compilation.plan);
    return trace;
  }

  MLIRContext context;
};

void expectEqual(const Trace &found, const Trace &expected, const std::string &of) {
  ASSERT_EQ(found.passes.size(), expected.passes.size()) << of;
  for (size_t i = 0; i < expected.passes.size(); ++i) {
    // The first pass that differs; what follows it had another start.
    ASSERT_TRUE(found.passes[i] == expected.passes[i]) << of << ": other code after " << expected.passes[i].first;
  }
  EXPECT_TRUE(found.plan == expected.plan) << of << ": another plan";
  EXPECT_FALSE(expected.plan.empty()) << of;
}

TEST_F(UseLists, HaveNoInfluence) {
  for (uint32_t seed = first; seed < first + graphs; ++seed) {
    RandomModel model = makeRandomModel(context, seed);
    Trace expected = compile(model, model.module->clone(), seed, nullptr);
    std::mt19937 random(seed);
    expectEqual(compile(model, model.module->clone(), seed, &random), expected,
                "shuffled, seed " + std::to_string(seed));
    // What `mtc import` writes and `mtc compile` reads.
    OwningOpRef<ModuleOp> read = parseSourceString<ModuleOp>(textOf(*model.module), ParserConfig(&context));
    ASSERT_TRUE(bool(read)) << seed;
    expectEqual(compile(model, std::move(read), seed, nullptr), expected, "as text, seed " + std::to_string(seed));
  }
}

} // namespace
