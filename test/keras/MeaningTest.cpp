// SPDX-License-Identifier: Apache-2.0
//
// What the imported models of test/keras/data mean: interpreted in double precision, before anything is made fast. It
// takes a second where a plan takes many, and its only rounding is that of float32 constants, so that a gradient that
// is off by a millionth is found, and so is one that should be 0. `KerasTest.cpp` compares what plans compute.
#include "test/keras/Expected.h"

#include "compiler/Passes.h"
#include "compiler/interpret/Interpreter.h"
#include "frontend/keras/ReadKeras.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace {

using kerastest::Expected;
using mtc::Tensors;

// Constants in models are float32, which a model that is badly conditioned makes more of: a twentieth of what float32
// everywhere makes of it in Keras.
constexpr kerastest::Nearness nearness = {1e-6, 0.05, 1e-9};

mlir::mt::Tensor tensorOf(const std::vector<int64_t> &shape, mt_dtype dtype, const void *bytes, size_t size) {
  mlir::mt::Tensor tensor{llvm::ArrayRef(shape)};
  auto fill = [&]<typename T>(T) {
    std::vector<T> values(size / sizeof(T));
    std::memcpy(values.data(), bytes, values.size() * sizeof(T));
    tensor.data.assign(values.begin(), values.end());
  };
  if (dtype == MT_I32)
    fill(int32_t());
  else
    fill(float());
  return tensor;
}

class Meaning : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    std::string stem = Expected::folder() + "/" + GetParam();
    mtrun::Status status = expected.load(stem);
    ASSERT_TRUE(status.ok()) << status.message();
    mtc::DiagnosticLines diagnostics(context, stem, nullptr);
    mtc::TrainingOptions options;
    options.sampleWeights = expected.has("weight/sample_weight");
    std::vector<mtc::NamedTensor> weights;
    module = mtc::readKerasArchive(stem + ".keras", expected.rows(), options, context, diagnostics, weights, nullptr);
    ASSERT_TRUE(module) << diagnostics.errors();
    mlir::PassManager passes(&context);
    passes.addPass(mtc::createUnroll());
    passes.addPass(mtc::createExpandOptimizer());
    passes.addPass(mtc::createDifferentiate());
    ASSERT_TRUE(mlir::succeeded(passes.run(*module))) << diagnostics.errors();
    step.samples = expected.rows();
    ASSERT_TRUE(mlir::succeeded(mtc::interpretProgram(*module, "init", step, variables))) << diagnostics.errors();
    for (const mtc::NamedTensor &weight : weights)
      variables[weight.name] = tensorOf(weight.shape, weight.dtype, weight.bytes.data(), weight.bytes.size());
    for (const mtrun::SafeTensor &tensor : expected.all())
      for (std::string folder : {"input/", "target/", "weight/"})
        if (tensor.name.starts_with(folder))
          step.inputs[tensor.name.substr(folder.size())] =
              tensorOf(tensor.shape, tensor.dtype, tensor.bytes.data(), tensor.bytes.size());
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  Expected expected;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mtc::Step step;
  Tensors variables;
};

TEST_P(Meaning, IsKeras) {
  auto predicted = mtc::interpretProgram(*module, "predict", step, variables);
  ASSERT_TRUE(mlir::succeeded(predicted));
  for (const auto &[name, tensor] : predicted->outputs)
    expected.compare("output/" + name, tensor.data, nearness);
  auto trained = mtc::interpretProgram(*module, "train_step", step, variables);
  ASSERT_TRUE(mlir::succeeded(trained));
  expected.compare("loss", std::vector<double>{trained->metrics.at("loss").value.data[0]}, nearness);
  for (const auto &[name, tensor] : variables)
    if (const mtrun::SafeTensor &after = expected.find("after/" + name); after.dtype == MT_I32)
      EXPECT_EQ(Expected::values<int32_t>(after), std::vector<int32_t>(tensor.data.begin(), tensor.data.end())) << name;
    else
      expected.compare(after.name, tensor.data, nearness);
  EXPECT_EQ(static_cast<int64_t>(variables.size()), expected.countOf("after/"));
}

INSTANTIATE_TEST_SUITE_P(Models, Meaning, testing::ValuesIn(Expected::modelNames()),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

} // namespace
