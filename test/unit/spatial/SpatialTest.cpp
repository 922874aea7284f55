// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, pools, moves and lookups mean what Keras means, and so do their gradients: keras.txt, by from_keras.py.
#include "compiler/differentiate/Gradient.h"
#include "compiler/interpret/Interpreter.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <fstream>
#include <map>
#include <sstream>

using namespace mlir;
using mt::Tensor;

namespace {

constexpr int64_t samples = 2;

struct Case {
  const char *name, *x, *w; // sizes of a sample of x and of w, "" for none
  const char *body;         // from %x and %w to %y
  const char *y;            // sizes of a sample
};

constexpr Case cases[] = {
    {"conv_same", "5x4x2", "3x3x2x2",
     "%y = mt.conv2d %x, %w strides = [2, 2] padding = [1, 1, 0, 1] : tensor<?x5x4x2xf32>, tensor<3x3x2x2xf32>",
     "3x2x2"},
    {"conv_dilated", "5x4x2", "2x2x2x3",
     "%y = mt.conv2d %x, %w dilation = [2, 2] : tensor<?x5x4x2xf32>, tensor<2x2x2x3xf32>", "3x2x3"},
    {"conv_groups", "5x4x2", "2x3x1x4",
     "%y = mt.conv2d %x, %w padding = [0, 1, 1, 1] groups = 2 : tensor<?x5x4x2xf32>, tensor<2x3x1x4xf32>", "5x4x4"},
    {"conv1d", "5x3", "4x3x2",
     R"(%a = mt.reshape %x : tensor<?x5x3xf32> to tensor<?x1x5x3xf32>
        %b = mt.reshape %w : tensor<4x3x2xf32> to tensor<1x4x3x2xf32>
        %c = mt.conv2d %a, %b strides = [1, 2] padding = [0, 0, 1, 2] : tensor<?x1x5x3xf32>, tensor<1x4x3x2xf32>
        %y = mt.reshape %c : tensor<?x1x3x2xf32> to tensor<?x3x2xf32>)",
     "3x2"},
    {"depthwise", "5x4x2", "3x2x2x2",
     R"(%a = mt.reshape %w : tensor<3x2x2x2xf32> to tensor<3x2x1x4xf32>
        %y = mt.conv2d %x, %a strides = [2, 2] padding = [1, 1, 0, 0] groups = 2
            : tensor<?x5x4x2xf32>, tensor<3x2x1x4xf32>)",
     "3x2x4"},
    {"transpose_same", "5x4x2", "3x3x3x2",
     "%y = mt.conv2d_input_gradient %x, %w strides = [2, 2] padding = [0, 1, 0, 1] : tensor<?x5x4x2xf32>, "
     "tensor<3x3x3x2xf32> to tensor<?x10x8x3xf32>",
     "10x8x3"},
    {"transpose_valid", "5x4x2", "3x3x3x2",
     "%y = mt.conv2d_input_gradient %x, %w strides = [2, 2] : tensor<?x5x4x2xf32>, tensor<3x3x3x2xf32> to "
     "tensor<?x11x9x3xf32>",
     "11x9x3"},
    {"max_same", "5x4x2", "",
     "%y = mt.pool max, %x window = [3, 2] strides = [2, 2] padding = [1, 1, 0, 0] : tensor<?x5x4x2xf32>", "3x2x2"},
    {"max_valid", "5x4x2", "", "%y = mt.pool max, %x window = [3, 2] strides = [2, 2] : tensor<?x5x4x2xf32>", "2x2x2"},
    {"average_same", "5x4x2", "",
     R"(%a = mt.pool sum, %x window = [3, 2] strides = [2, 2] padding = [1, 1, 0, 0] : tensor<?x5x4x2xf32>
        %b = mt.constant dense<[[[0.25], [0.25]], [[0.166666666666667], [0.166666666666667]], [[0.25], [0.25]]]>
            : tensor<3x2x1xf32>
        %y = mt.mul %a, %b : tensor<?x3x2x2xf32>, tensor<3x2x1xf32>)",
     "3x2x2"},
    {"average_valid", "5x4x2", "",
     R"(%a = mt.pool sum, %x window = [3, 2] strides = [2, 2] : tensor<?x5x4x2xf32>
        %b = mt.constant dense<0.166666666666667> : tensor<f32>
        %y = mt.mul %a, %b : tensor<?x2x2x2xf32>, tensor<f32>)",
     "2x2x2"},
    {"take", "", "4x3", "%y = mt.gather %w, %ids : tensor<4x3xf32>, tensor<?x2xi32>", "2x3"},
    {"zero_padding", "5x4x2", "", "%y = mt.pad %x low = [1, 0, 0] high = [0, 2, 0] : tensor<?x5x4x2xf32>", "6x6x2"},
    {"cropping", "5x4x2", "",
     "%y = mt.slice %x starts = [1, 1, 0] sizes = [2, 3, 2] strides = [2, 1, 1] : tensor<?x5x4x2xf32>", "2x3x2"},
    {"flip", "5x4x2", "", "%y = mt.reverse %x over [2] : tensor<?x5x4x2xf32>", "5x4x2"},
    {"concatenate", "5x4x2", "",
     R"(%a = mt.slice %x starts = [0, 0, 0] sizes = [5, 4, 1] : tensor<?x5x4x2xf32>
        %y = mt.concat %x, %a dim = 3 : tensor<?x5x4x2xf32>, tensor<?x5x4x1xf32>)",
     "5x4x3"},
};

class Spatial : public testing::TestWithParam<Case> {
protected:
  Spatial() { context.loadDialect<mt::MtDialect>(); }

  std::map<std::string, std::vector<double>> expected() {
    std::ifstream file(MTC_SOURCE_DIR "/test/unit/spatial/keras.txt");
    std::map<std::string, std::vector<double>> found;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name, what;
      words >> name >> what;
      if (name == GetParam().name)
        for (double number; words >> number;)
          found[what].push_back(number);
    }
    return found;
  }

  // The program that gives y, dx and dw of sum(y * dy).
  OwningOpRef<ModuleOp> program() {
    const Case &test = GetParam();
    std::string text = "mt.program @p {\n";
    if (*test.x)
      text += std::string("%x = mt.input \"x\" : tensor<?x") + test.x + "xf32>\n";
    if (*test.w)
      text += std::string("%w = mt.read \"w\" : tensor<") + test.w + "xf32>\n";
    std::string y = std::string("tensor<?x") + test.y + "xf32>";
    text += "%ids = mt.input \"ids\" : tensor<?x2xi32>\n%dy = mt.input \"dy\" : " + y + "\n" + test.body +
            "\nmt.output \"y\", %y : " + y + "\n}";
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return module;
    auto inputs = module->lookupSymbol<mt::ProgramOp>("p").getBody().getOps<mt::InputOp>();
    mt::OutputOp output = *module->lookupSymbol<mt::ProgramOp>("p").getBody().getOps<mt::OutputOp>().begin();
    Value dy = *llvm::find_if(inputs, [](mt::InputOp input) { return input.getName() == "dy"; });
    OpBuilder builder = OpBuilder::atBlockEnd(output->getBlock());
    Location at = output.getLoc();
    Value loss = mt::MulOp::create(builder, at, output.getValue(), dy);
    while (cast<RankedTensorType>(loss.getType()).getRank() > 0)
      loss = mt::ReduceOp::create(builder, at, mt::Reduction::sum, loss,
                                  {cast<RankedTensorType>(loss.getType()).getRank() - 1});
    SmallVector<Value> given;
    for (Operation &op : *output->getBlock())
      if (isa<mt::ReadOp>(op) || (isa<mt::InputOp>(op) && cast<mt::InputOp>(op).getName() == "x"))
        given.push_back(op.getResult(0));
    auto gradients = mtc::buildGradients(builder, loss, /*scale=*/{}, given);
    if (failed(gradients))
      return {};
    for (auto [value, gradient] : llvm::zip_equal(given, *gradients))
      if (value.getDefiningOp<mt::ReadOp>())
        mt::AssignOp::create(builder, at, "w", gradient, Value());
      else
        mt::OutputOp::create(builder, at, "dx", gradient);
    return module;
  }

  static Tensor numbers(int64_t count, int64_t k) {
    Tensor tensor(ArrayRef<int64_t>{count});
    for (int64_t i = 0; i < count; ++i)
      tensor.data[i] = (i * k % 11 - 5) / 4.0;
    return tensor;
  }
  static int64_t elements(StringRef shape) {
    int64_t count = 1;
    SmallVector<StringRef> sizes;
    shape.split(sizes, 'x');
    for (StringRef size : sizes)
      count *= std::stoll(size.str());
    return count;
  }

  static void compare(const char *what, const std::vector<double> &expected, const Tensor &found) {
    ASSERT_EQ(expected.size(), found.data.size()) << what;
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(expected[i], found.data[i], 1e-6) << what << " element " << i; // constants are float32
  }

  MLIRContext context;
};

TEST_P(Spatial, AgreesWithKeras) {
  const Case &test = GetParam();
  auto keras = expected();
  ASSERT_FALSE(keras.empty());
  OwningOpRef<ModuleOp> module = program();
  ASSERT_TRUE(module && succeeded(verify(*module)));
  mtc::Step step;
  step.samples = samples;
  step.inputs["dy"] = numbers(samples * elements(test.y), 5);
  step.inputs["ids"] = Tensor(ArrayRef<int64_t>{4});
  step.inputs["ids"].data = {1, 0, 3, 1};
  mtc::Tensors variables;
  if (*test.x)
    step.inputs["x"] = numbers(samples * elements(test.x), 7);
  if (*test.w)
    variables["w"] = numbers(elements(test.w), 3);
  auto results = mtc::interpretProgram(*module, "p", step, variables);
  ASSERT_TRUE(succeeded(results));
  compare("y", keras["y"], results->outputs["y"]);
  if (*test.x)
    compare("dx", keras["dx"], results->outputs["dx"]);
  if (*test.w)
    compare("dw", keras["dw"], variables["w"]);
}

INSTANTIATE_TEST_SUITE_P(Cases, Spatial, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

// Keras leaves open who of equals takes a maximum's gradient; XLA gives it to the first in row-major order.
TEST(Pool, GradientGoesToTheFirstOfEquals) {
  MLIRContext context;
  context.loadDialect<mt::MtDialect>();
  auto module = parseSourceString<ModuleOp>(R"(mt.program @p {
    %x = mt.input "x" : tensor<?x4x4x1xf32>
    %dy = mt.input "dy" : tensor<?x3x3x1xf32>
    %dx = mt.pool_gradient max, %dy at %x window = [2, 2]
        : tensor<?x3x3x1xf32>, tensor<?x4x4x1xf32> to tensor<?x4x4x1xf32>
    mt.output "dx", %dx : tensor<?x4x4x1xf32>
  })",
                                            &context);
  ASSERT_TRUE(module);
  mtc::Step step;
  step.samples = 1;
  step.inputs["x"] = Tensor(ArrayRef<int64_t>{16});
  step.inputs["x"].data = {0, 1, 1, 0, 1, 1, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2};
  step.inputs["dy"] = Tensor(ArrayRef<int64_t>{9});
  step.inputs["dy"].data = {-1.25, 0, 1.25, -0.25, 1, -0.5, 0.75, -0.75, 0.5};
  mtc::Tensors variables;
  auto results = mtc::interpretProgram(*module, "p", step, variables);
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ(results->outputs["dx"].data,
            (std::vector<double>{0, -1.25, 1.25, 0, 0, 0, 0, 0, 0.5, 0.25, 0, 0, 0, 0, 0, 0}));
}

} // namespace
