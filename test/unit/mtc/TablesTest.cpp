// SPDX-License-Identifier: Apache-2.0
//
// A user's variable called `x/learning_rate` was taken for the optimizer's, and written past its end; the rate of a
// schedule was nowhere in a plan; nothing said which ids and labels a model knows.
#include "Model.h"
#include "runtime/abi/plan_generated.h"

#include <gtest/gtest.h>

using namespace mtctest;

namespace {

struct Tables {
  explicit Tables(const std::string &text) : bytes(compiled(text)), plan(*mt::plan::GetPlan(bytes.data() + 64)) {}
  static std::string compiled(const std::string &text) {
    Outcome outcome = compile(text);
    EXPECT_EQ(outcome.code, MT_OK) << outcome.message;
    return outcome.bytes();
  }
  std::string nameOf(int variable) const {
    return variable < 0 ? "none" : plan.variables()->Get(variable)->name()->str();
  }
  const mt::plan::Program &program(const char *name) const {
    for (const mt::plan::Program *program : *plan.programs())
      if (program->name()->str() == name)
        return *program;
    throw std::runtime_error(name);
  }
  long limitOf(const char *of, const char *entry) const {
    for (const mt::plan::SignatureEntry *each : *program(of).signature())
      if (each->name()->str() == entry)
        return each->limit();
    throw std::runtime_error(entry);
  }

  std::string bytes;
  const mt::plan::Plan &plan;
};

// Rows of a table by id, times a matrix; `optimizer` last.
std::string lookup(const std::string &optimizer) {
  return R"(mt.model @lookup {
  %ids = mt.input "ids" : tensor<?x2xi32>
  %x = mt.input "x" : tensor<?x8xf32>
  %f = mt.input "f" : tensor<?x1xf32>
  %y = mt.target "y" : tensor<?xi32>
  %v = mt.target "v" : tensor<?x3xf32>
  %table = mt.variable "x/learning_rate" init(glorot_uniform) : tensor<50x8xf32>
  %other = mt.variable "y/iteration" init(glorot_uniform) : tensor<40x8xf32>
  %one = mt.reshape %ids : tensor<?x2xi32> to tensor<?x2x1xi32>
  %flat = mt.reshape %one : tensor<?x2x1xi32> to tensor<?x2xi32>
  %a = mt.gather %table, %ids : tensor<50x8xf32>, tensor<?x2xi32>
  %b = mt.gather %other, %flat : tensor<40x8xf32>, tensor<?x2xi32>
  %i = mt.cast %f : tensor<?x1xf32> to tensor<?x1xi32>
  %c = mt.gather %table, %i : tensor<50x8xf32>, tensor<?x1xi32>
  %ab = mt.add %a, %b : tensor<?x2x8xf32>, tensor<?x2x8xf32>
  %sum = mt.reduce sum, %ab over [1] : tensor<?x2x8xf32>
  %single = mt.reduce sum, %c over [1] : tensor<?x1x8xf32>
  %h0 = mt.add %sum, %x : tensor<?x8xf32>, tensor<?x8xf32>
  %h = mt.add %h0, %single : tensor<?x8xf32>, tensor<?x8xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<8x3xf32>
  %z = mt.matmul %h, %w : tensor<?x8xf32>, tensor<8x3xf32>
  %l = mt.sparse_categorical_crossentropy %z, %y from_logits : tensor<?x3xf32>, tensor<?xi32>
  %m = mt.mean_squared_error %z, %v : tensor<?x3xf32>, tensor<?x3xf32>
  mt.loss "a", %l : tensor<?xf32>
  mt.loss "b", %m : tensor<?xf32>
  mt.output "z", %z : tensor<?x3xf32>
  )" + optimizer +
         "\n}\n";
}

const std::string scheduled = lookup(R"(%step = mt.iteration
  %rate = mt.cosine_decay %step <{initial_learning_rate = 0.1 : f32, decay_steps = 100.0 : f32}>
  mt.sgd rate(%rate))");

} // namespace

TEST(Tables, NameTheOptimizersOwnVariables) {
  Tables fixed(lookup("mt.sgd <{learning_rate = 0.1 : f32}>"));
  EXPECT_EQ(fixed.nameOf(fixed.plan.learning_rate()), "sgd/learning_rate");
  EXPECT_EQ(fixed.nameOf(fixed.plan.iteration()), "sgd/iteration");
  Tables cosine(scheduled);
  EXPECT_EQ(cosine.nameOf(cosine.plan.learning_rate()), "none");
  EXPECT_EQ(cosine.nameOf(cosine.plan.iteration()), "sgd/iteration");
}

TEST(Tables, NameTheRateOfASchedule) {
  Tables cosine(scheduled);
  const mt::plan::Program &step = cosine.program("train_step");
  ASSERT_GE(step.learning_rate(), 0);
  const mt::plan::Buffer &rate = *step.buffers()->Get(step.learning_rate());
  EXPECT_EQ(rate.space(), mt::plan::Space::Shared);
  EXPECT_EQ(rate.dtype(), mt::plan::DType::F32);
  EXPECT_EQ(rate.fixed_bytes(), 4u);
  EXPECT_EQ(cosine.program("eval_step").learning_rate(), -1);
  Tables fixed(lookup("mt.sgd <{learning_rate = 0.1 : f32}>"));
  EXPECT_EQ(fixed.program("train_step").learning_rate(), -1);
  // It is a result more of a kernel that is there anyway.
  EXPECT_LE(step.steps()->size(), fixed.program("train_step").steps()->size() + 1);
}

TEST(Tables, LimitIdsAndLabels) {
  Tables tables(lookup("mt.sgd <{learning_rate = 0.1 : f32}>"));
  EXPECT_EQ(tables.limitOf("train_step", "ids"), 40); // of two tables the smaller one
  EXPECT_EQ(tables.limitOf("train_step", "f"), 50);
  EXPECT_EQ(tables.limitOf("train_step", "y"), 3);
  EXPECT_EQ(tables.limitOf("train_step", "x"), -1);
  EXPECT_EQ(tables.limitOf("train_step", "v"), -1);
  EXPECT_EQ(tables.limitOf("eval_step", "y"), 3);
  EXPECT_EQ(tables.limitOf("predict", "ids"), 40);
}

// Names of the checkpoint's and the history's files come from the model: all of these were taken, and ended a run after
// its first checkpoint or wrote outside of its folder.
TEST(Tables, RefuseNamesThatFilesCannotHave) {
  auto named = [](const std::string &name, const std::string &variable) {
    std::string text = model;
    text.replace(text.find("@small"), 6, "@\"" + name + "\"");
    text.replace(text.find("\"w\""), 3, "\"" + variable + "\"");
    return importError(text);
  };
  EXPECT_EQ(named("a.b", "w"), "compiled");
  EXPECT_NE(named("../../escape", "w")
                .find("model.mlir:1:1: error: 'mt.model' op expected a valid file name, without '/' and not only dots, "
                      "found \"../../escape\""),
            std::string::npos)
      << named("../../escape", "w");
  EXPECT_NE(named("..", "w").find("not only dots, found \"..\""), std::string::npos);
  EXPECT_NE(named("a\\0Ab", "w").find("expected a name without control characters, found byte 10"), std::string::npos);
  EXPECT_NE(
      named("m", "a\\FF\\FEb")
          .find("model.mlir:4:8: error: 'mt.variable' op expected a name in UTF-8, found byte 255 after 1 valid bytes"),
      std::string::npos)
      << named("m", "a\\FF\\FEb");
  EXPECT_EQ(named("m", "gewicht/\xc3\xa4\xe2\x82\xac"), "compiled");
}
