// SPDX-License-Identifier: Apache-2.0
//
// Random models mean the same after every pass and as compiled code, and faults are found. A fixed sample by default;
//   MTC_RANDOM_GRAPHS=1000 MTC_RANDOM_SEED=1 build/release/test/unit/randomTests
// MTC_RANDOM_PRINT=1 prints the models that differ. MTC_RANDOM_HASHES=FILE writes a hash of all results per seed there,
// and looks at compiled code alone: equal files of two commits say that they compute the same bits.
#include "compiler/Passes.h"
#include "compiler/Pipeline.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "test/unit/random/Comparison.h"
#include "test/unit/random/Faults.h"
#include "gtest/gtest.h"
#include <fstream>

using namespace mlir;
using namespace mtc::test;

namespace {

#if __has_feature(address_sanitizer)
constexpr uint32_t sample = 15; // of slow code
#else
constexpr uint32_t sample = 30;
#endif
const uint32_t graphs = fromEnvironment("MTC_RANDOM_GRAPHS", sample), first = fromEnvironment("MTC_RANDOM_SEED", 1);

class RandomGraphs : public testing::Test {
protected:
  RandomGraphs() : context(registry(), MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }
  static DialectRegistry registry() {
    DialectRegistry dialects;
    mtc::registerDialects(dialects);
    return dialects;
  }
  MLIRContext context;
};

TEST_F(RandomGraphs, MeanTheSameAfterEveryPassAndCompiled) {
  uint32_t failures = 0, slack = 0, again = 0;
  const char *hashes = std::getenv("MTC_RANDOM_HASHES");
  std::ofstream file(hashes ? hashes : "");
  Options options;
  options.passes = !hashes;
  for (uint32_t seed = first; seed < first + graphs && failures < 50; ++seed) {
    RandomModel model = makeRandomModel(context, seed);
    ASSERT_TRUE(succeeded(verify(*model.module))) << seed;
    Report report = compare(model, seed, options);
    if (hashes)
      file << seed << ' ' << report.hash << std::endl;
    if (!report.problem.empty() && std::getenv("MTC_RANDOM_PRINT"))
      model.module->dump();
    EXPECT_EQ(report.problem, "") << "seed " << seed << ", " << model.step.samples << " of " << model.step.batch
                                  << " samples, " << model.step.shards << " shards";
    failures += !report.problem.empty();
    slack += report.slack;
    again += report.again;
  }
  std::printf("%u of %u graphs agree only within their rounding; something ran twice in %u\n", slack, graphs, again);
  if (graphs >= 10) {
    EXPECT_GT(again, 0u);
  }
}

// To the bit on other devices, and within a few roundings of what is interpreted.
TEST_F(RandomGraphs, MeanTheSameInSixteenBits) {
  for (uint32_t seed = first; seed < first + graphs / 10 + 1; ++seed) {
    RandomModel model = makeRandomModel(context, seed);
    Options options;
    options.precision = seed % 3 ? "bf16" : "f16";
    Report report = compare(model, seed, options);
    EXPECT_EQ(report.problem, "") << "seed " << seed << ", " << options.precision;
    if (!report.problem.empty() && std::getenv("MTC_RANDOM_PRINT"))
      model.module->dump();
  }
}

// Logits of up to five blocks of classes: no two numbers of blocks add in the same order, but all mean the same.
TEST_F(RandomGraphs, MeanTheSameByBlocksOfClasses) {
  uint32_t blocked = 0;
  for (uint32_t seed = first; seed < first + graphs / 3 + 1; ++seed) {
    RandomModel model = makeRandomModel(context, seed, /*classes=*/10 + seed % 31);
    Options options;
    options.logitBytes = std::max<int64_t>(1, model.step.batch * (10 + seed % 31) * 4 / (1 + seed % 5));
    options.precision = seed % 4 ? nullptr : "bf16";
    Report report = compare(model, seed, options);
    EXPECT_EQ(report.problem, "") << "seed " << seed << ", " << model.step.batch << " samples";
    blocked += report.blocks;
    if (!report.problem.empty() && std::getenv("MTC_RANDOM_PRINT"))
      model.module->dump();
  }
  EXPECT_GT(blocked, graphs / 10);
}

// Every op is there, with attributes that are not the defaults, and graphs are large enough.
TEST_F(RandomGraphs, HoldEveryOp) {
  llvm::StringMap<int64_t> counts;
  // To make a graph is quick: as many as the long run has.
  constexpr int64_t least = 20;
  int64_t smallest = 1 << 20;
  PassManager expand(&context);
  expand.addPass(mtc::createExpandOptimizer());
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    RandomModel model = makeRandomModel(context, seed);
    int64_t ops = 0;
    auto count = [&](Operation *op) {
      StringRef name = op->getName().getStringRef();
      ++counts[name];
      ops += isa<mt::InterpretOpInterface>(op);
      NamedAttrList defaults;
      op->getName().populateDefaultAttrs(defaults);
      for (StringAttr attribute : op->getName().getAttributeNames())
        if (auto value = op->getInherentAttr(attribute); value && *value && *value != defaults.get(attribute))
          ++counts[(name + " " + attribute.getValue()).str()];
    };
    model.module->walk(count);
    smallest = std::min(smallest, ops);
    // The attributes of an optimizer's own variables.
    ASSERT_TRUE(succeeded(expand.run(*model.module))) << seed;
    model.module->walk([&](mt::VariableOp variable) {
      if (variable.getSlot())
        count(variable);
    });
  }
  EXPECT_GE(smallest, 20);
  std::pair<int64_t, std::string> rarest(1 << 30, "");
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    // Other ops of the dialect are not for models.
    // These are what the gradient of an attention is made of, in training graphs alone.
    if (name.getStringRef().starts_with("mt.attention_"))
      continue;
    bool computes = name.hasInterface<mt::InterpretOpInterface>() || name.hasInterface<mt::OptimizerOpInterface>();
    if (!computes && (name.getDialectNamespace() != "mt" || !counts.count(name.getStringRef())))
      continue;
    SmallVector<std::string> keys{name.getStringRef().str()};
    for (StringAttr attribute : name.getAttributeNames())
      keys.push_back((name.getStringRef() + " " + attribute.getValue()).str());
    for (const std::string &key : keys) {
      EXPECT_GE(counts.lookup(key), least) << key;
      rarest = std::min(rarest, {counts.lookup(key), key});
    }
  }
  std::printf("%lld ops in the smallest graph; the rarest is %s, %lld times\n", (long long)smallest,
              rarest.second.c_str(), (long long)rarest.first);
}

// What finds a fault is arithmetic, which a sanitizer does not change: a build without one does it.
#if !__has_feature(address_sanitizer)
class SeededFault : public RandomGraphs, public testing::WithParamInterface<Fault> {};

// Found in what compiled code computes, and before that by interpreting what the pass left, where that has a meaning.
TEST_P(SeededFault, IsFound) {
  const Fault &fault = GetParam();
  bool afterAllocate = StringRef(fault.after) == "plan-check" || StringRef(fault.after) == "plan-codegen";
  for (bool compiled : {false, true}) {
    if (!compiled && afterAllocate)
      continue;
    Options options{.passes = !compiled, .compile = compiled, .fault = &fault};
    Report report;
    // A model may have nothing to spoil, or not depend on what was.
    for (uint32_t seed = first; seed < first + 200 && (report.problem.empty() || !report.seeded); ++seed)
      report = compare(makeRandomModel(context, seed), seed, options);
    EXPECT_TRUE(report.seeded && !report.problem.empty());
    std::printf("%s: %s\n", fault.name, report.problem.substr(0, report.problem.find('\n')).c_str());
  }
}
INSTANTIATE_TEST_SUITE_P(Random, SeededFault, testing::ValuesIn(faults().begin(), faults().end()));
#endif

} // namespace
