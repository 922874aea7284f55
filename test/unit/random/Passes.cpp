// SPDX-License-Identifier: Apache-2.0
//
// Random models mean the same before and after every pass, and faults seeded into what passes leave are found.
#include "compiler/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "test/unit/random/Compare.h"
#include "test/unit/random/RandomModel.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mtc;
using namespace mtc::test;

namespace {

// Sums in another order, and scalars rounded to float32 at other places.
constexpr double tolerance = 2e-6;

struct NamedPass {
  const char *name;
  std::unique_ptr<Pass> (*create)();
  bool replicas; // from here on the module is one replica's view
};
const NamedPass passes[] = {
    {"mt-decompose", [] { return createDecompose(); }, false}, {"mt-annotate", [] { return createAnnotate(); }, false},
    {"mt-propagate", [] { return createPropagate(); }, false}, {"mt-partition", [] { return createPartition(); }, true},
    {"mt-bucket", [] { return createBucket(); }, true},        {"mt-fuse", [] { return createFuse(); }, true},
    {"mt-schedule", [] { return createSchedule(); }, true},
};

std::string text(ModuleOp module) {
  std::string printed;
  llvm::raw_string_ostream(printed) << module;
  return printed;
}

// init, then train_step twice, then predict; nothing where a program cannot be run.
std::optional<Outcome> run(ModuleOp module, Step step, bool replicas) {
  if (!replicas)
    step.replicas = 1;
  Outcome outcome;
  for (const char *program : {"init", "train_step", "train_step", "predict"}) {
    FailureOr<StepResults> results = interpretProgram(module, program, step, outcome.variables);
    if (failed(results))
      return std::nullopt;
    if (results->means.empty())
      outcome.results.outputs = results->outputs;
    else
      outcome.results.means = results->means;
  }
  return outcome;
}

class RandomGraphs : public testing::Test {
protected:
  RandomGraphs() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<mt::MtDialect, shard::ShardDialect, plan::PlanDialect>();
  }

  // A model after mt-differentiate.
  RandomModel differentiated(uint32_t seed) {
    RandomModel model = makeRandomModel(context, seed);
    EXPECT_TRUE(succeeded(verify(*model.module))) << seed;
    OpBuilder builder(&context);
    (*model.module)->setAttr("mt.batch", builder.getI64IntegerAttr(model.step.batch));
    (*model.module)->setAttr("mt.replicas", builder.getI64IntegerAttr(model.step.replicas));
    (*model.module)->setAttr("mt.leaf_rows",
                             builder.getI64IntegerAttr((model.step.batch + model.step.replicas - 1) / model.step.replicas));
    EXPECT_TRUE(apply(*model.module, createDifferentiate())) << seed;
    return model;
  }

  bool apply(ModuleOp module, std::unique_ptr<Pass> pass) {
    PassManager manager(&context);
    manager.addPass(std::move(pass));
    return succeeded(manager.run(module));
  }

  MLIRContext context;
};

TEST_F(RandomGraphs, MeanTheSameAfterEveryPass) {
  for (uint32_t seed = 1; seed <= graphCount(60); ++seed) {
    RandomModel model = differentiated(seed);
    std::optional<Outcome> expected = run(*model.module, model.step, false);
    ASSERT_TRUE(expected) << "seed " << seed;
    for (const NamedPass &pass : passes) {
      ASSERT_TRUE(apply(*model.module, pass.create())) << pass.name << " on seed " << seed;
      std::optional<Outcome> found = run(*model.module, model.step, pass.replicas);
      ASSERT_TRUE(found) << pass.name << " on seed " << seed << "\n" << text(*model.module);
      ASSERT_EQ(difference(*found, *expected, tolerance), "") << "after " << pass.name << " on seed " << seed;
    }
  }
}

// Every op is there, and graphs are large enough.
TEST_F(RandomGraphs, HoldEveryOp) {
  llvm::StringMap<int64_t> counts;
  uint32_t graphs = graphCount(60);
  for (uint32_t seed = 1; seed <= graphs; ++seed) {
    RandomModel model = makeRandomModel(context, seed);
    int64_t ops = 0;
    model.module->walk([&](Operation *op) {
      ++counts[op->getName().getStringRef()];
      ops += isa<mt::InterpretOpInterface>(op);
    });
    EXPECT_GE(ops, 20) << "seed " << seed;
  }
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<mt::InterpretOpInterface>() || name.hasInterface<mt::OptimizerOpInterface>())
      EXPECT_GE(counts.lookup(name.getStringRef()), graphs >= 1000 ? 20 : 1) << name.getStringRef().str();
}

// ---- faults

// Changes the first op of a kind in train_step; false where there is none.
template <typename Op> bool change(ModuleOp module, llvm::function_ref<bool(Op)> edit) {
  return module.lookupSymbol<mt::ProgramOp>("train_step")
      .walk([&](Op op) { return edit(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}
template <typename Op> bool bypass(Op op) {
  if (op->getResult(0).getType() != op->getOperand(0).getType() || op->use_empty())
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}
// The same op with another kind: mt.add for mt.sub.
template <typename From, typename To> bool exchange(ModuleOp module) {
  return change<From>(module, [](From op) {
    if (op->use_empty() || !isa<FloatType>(getElementTypeOrSelf(op.getType())))
      return false;
    OpBuilder builder(op);
    op->getResult(0).replaceAllUsesWith(To::create(builder, op.getLoc(), op.getLhs(), op.getRhs()));
    op->erase();
    return true;
  });
}
bool forgetAssign(ModuleOp module) {
  return change<mt::AssignOp>(module, [](mt::AssignOp op) { return op.erase(), true; });
}

struct Fault {
  const char *name;
  const char *after; // the pass that would have made it
  bool (*seed)(ModuleOp);
};
const Fault faults[] = {
    {"a gradient's sign", "mt-decompose", exchange<mt::SubOp, mt::AddOp>},
    {"a gradient that is not accumulated", "mt-decompose",
     [](ModuleOp m) { return change<mt::AddOp>(m, [](mt::AddOp op) { return bypass(op); }); }},
    {"a divisor that is a factor", "mt-decompose", exchange<mt::DivOp, mt::MulOp>},
    {"a variable without update", "mt-decompose", forgetAssign},
    {"a missing all-reduce", "mt-partition",
     [](ModuleOp m) { return change<shard::AllReduceOp>(m, [](shard::AllReduceOp op) { return bypass(op); }); }},
    {"an all-reduce twice", "mt-partition",
     [](ModuleOp m) {
       return change<shard::AllReduceOp>(m, [](shard::AllReduceOp op) {
         OpBuilder builder(op);
         Operation *again = builder.clone(*op);
         op->setOperand(0, again->getResult(0));
         return true;
       });
     }},
    {"the maximum that is a sum", "mt-bucket",
     [](ModuleOp m) {
       return change<mt::ReduceOp>(m, [](mt::ReduceOp op) { return op.getKind() == mt::Reduction::max && (op.setKind(mt::Reduction::min), true); });
     }},
    {"swapped results of a kernel", "mt-fuse",
     [](ModuleOp m) {
       return change<mt::KernelOp>(m, [](mt::KernelOp op) {
         for (unsigned i = 1; i < op.getNumResults(); ++i)
           if (op.getResult(i).getType() == op.getResult(0).getType() && !op.getResult(i).use_empty()) {
             op.getResult(0).replaceAllUsesWith(op.getResult(i));
             return true;
           }
         return false;
       });
     }},
    {"an epilogue without its last op", "mt-fuse",
     [](ModuleOp m) { return change<mt::TanhOp>(m, [](mt::TanhOp op) { return bypass(op); }); }},
    {"a constant of another kernel", "mt-fuse",
     [](ModuleOp m) {
       return change<mt::ConstantOp>(m, [](mt::ConstantOp op) {
         auto value = dyn_cast<DenseFPElementsAttr>(op.getValue());
         if (!value)
           return false;
         op.setValueAttr(DenseElementsAttr::get(value.getType(), 0.625f));
         return true;
       });
     }},
};

TEST_F(RandomGraphs, FindSeededFaults) {
  context.getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  for (const Fault &fault : faults) {
    bool caught = false;
    for (uint32_t seed = 1; seed <= 20 && !caught; ++seed) {
      RandomModel model = differentiated(seed);
      std::optional<Outcome> expected = run(*model.module, model.step, false);
      ASSERT_TRUE(expected);
      for (const NamedPass &pass : passes) {
        ASSERT_TRUE(apply(*model.module, pass.create()));
        if (StringRef(pass.name) != fault.after)
          continue;
        if (!fault.seed(*model.module))
          break;
        std::optional<Outcome> found = run(*model.module, model.step, pass.replicas);
        caught = !found || !difference(*found, *expected, tolerance).empty();
        break;
      }
    }
    EXPECT_TRUE(caught) << fault.name;
  }
}
} // namespace
