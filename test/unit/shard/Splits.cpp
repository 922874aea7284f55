// SPDX-License-Identifier: Apache-2.0
//
// How splits travel through an op's loops, and what cannot be split: also splits that no verified program has.
#include "compiler/shard/Splits.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using mtc::AxisSplits;

namespace {

// Splits one op of mt, the last of a program that begins with reads %a, %b, %c; the error or the split loops as text.
class Splits : public ::testing::Test {
protected:
  Splits() { context.loadDialect<mt::MtDialect, shard::ShardDialect>(); }

  std::string split(llvm::StringRef reads, llvm::StringRef op, ArrayRef<AxisSplits> operands) {
    std::string text = ("mt.program @p {\n" + reads + "\n" + op + "\n}").str();
    std::string result;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      result += "error: " + diagnostic.str();
      return success();
    });
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return result;
    auto program = *module->getOps<mt::ProgramOp>().begin();
    auto last = cast<shard::ShardingInterface>(program.getBody().front().back());
    auto loops = mtc::splitLoops(last, operands);
    if (failed(loops))
      return result;
    for (bool isSplit : loops->split)
      result += isSplit ? 's' : '.';
    result += " ->";
    for (bool isSplit : loops->results[0])
      result += isSplit ? " s" : " .";
    return result + (loops->reduction ? " sum" : "");
  }

  MLIRContext context;
};

constexpr const char *matrices = "%a = mt.read \"a\" : tensor<4x8xf32>\n%b = mt.read \"b\" : tensor<4x8xf32>";

TEST_F(Splits, FollowsLoops) {
  EXPECT_EQ(split(matrices, "%y = mt.add %a, %b : tensor<4x8xf32>, tensor<4x8xf32>", {{true, false}, {true, false}}),
            "s. -> s .");
  EXPECT_EQ(split(matrices, "%y = mt.transpose %a by [1, 0] : tensor<4x8xf32>", {{true, false}}), ".s -> . s");
  EXPECT_EQ(split(matrices, "%y = mt.reduce sum, %a over [1] : tensor<4x8xf32>", {{true, false}}), "s. -> s");
}

TEST_F(Splits, FindsSumsThatCrossTheSplit) {
  EXPECT_EQ(split(matrices, "%y = mt.reduce sum, %a over [0] : tensor<4x8xf32>", {{true, false}}), "s. -> . sum");
  EXPECT_EQ(split(matrices, "%y = mt.matmul %a, %b transpose_a : tensor<4x8xf32>, tensor<4x8xf32>",
                  {{true, false}, {true, false}}),
            "..s -> . . sum");
}

TEST_F(Splits, RefusesReductionsThatAreNoSum) {
  EXPECT_EQ(split(matrices, "%y = mt.reduce max, %a over [0] : tensor<4x8xf32>", {{true, false}}),
            "error: 'mt.reduce' op expected a reduction over the batch to be a sum, found max");
  EXPECT_EQ(split(matrices, "%y = mt.argmax %a : tensor<4x8xf32>", {{false, true}}),
            "error: 'mt.argmax' op expected a reduction over the batch to be a sum, found generic");
}

TEST_F(Splits, RefusesConflicts) {
  EXPECT_EQ(split(matrices, "%y = mt.add %a, %b : tensor<4x8xf32>, tensor<4x8xf32>", {{true, false}, {false, false}}),
            "error: 'mt.add' op expected operands that agree on the split of loop 0, found axis 0 of operand 1 "
            "replicated against an "
            "earlier operand");
  EXPECT_EQ(split(matrices, "%y = mt.add %a, %b : tensor<4x8xf32>, tensor<4x8xf32>", {{true, true}, {true, true}}),
            "error: 'mt.add' op expected at most one loop to be split, found 2");
}

TEST_F(Splits, RefusesAnAxisThatIsNotWalked) {
  constexpr const char *row = "%a = mt.read \"a\" : tensor<4x8xf32>\n%b = mt.read \"b\" : tensor<1x8xf32>";
  EXPECT_EQ(split(row, "%y = mt.add %a, %b : tensor<4x8xf32>, tensor<1x8xf32>", {{true, false}, {false, false}}),
            "s. -> s .");
  EXPECT_EQ(split(row, "%y = mt.add %a, %b : tensor<4x8xf32>, tensor<1x8xf32>", {{false, false}, {true, false}}),
            "error: 'mt.add' op expected axis 0 of operand 1 to be replicated, since the op does not walk it in order, "
            "found it split");
}

} // namespace
