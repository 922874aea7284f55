// SPDX-License-Identifier: Apache-2.0
//
// Texts that must not crash, hang or pass.
#include "Model.h"

#include <gtest/gtest.h>

using namespace mtctest;

static std::string repeat(const std::string &text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i)
    result += text;
  return result;
}

TEST(ReadModel, BoundsNesting) {
  for (const char *bracket : {"[", "(", "{", "<", "[{(<", "mt.model @m {", "{ x = [", "tensor<", "(\")\""})
    EXPECT_NE(importError(repeat(bracket, 100000))
                  .find(bracket[0] == '{' ? "expected brackets nested at most 200 deep, found more" // JSON
                                          : "error: expected brackets nested at most 256 deep, found more"),
              std::string::npos)
        << bracket;
}

TEST(ReadModel, DoesNotCountBracketsInStringsCommentsAndArrows) {
  std::string text = "// " + repeat("[", 1000) + "\n// " + repeat("->", 1000) + "\n" + model;
  mtc_options options = mtc_options_init();
  options.stop_after = "import";
  Outcome outcome = compile(text, options);
  EXPECT_EQ(outcome.code, MT_OK) << outcome.message;
}

// A closing bracket of another kind must not make a level free again.
TEST(ReadModel, StrayClosersHideNothing) {
  EXPECT_NE(importError(repeat("[>", 100000)).find("nested at most 256"), std::string::npos);
  EXPECT_NE(importError(repeat("[->", 100000)).find("nested at most 256"), std::string::npos);
}

TEST(ReadModel, RefusesWhatExpandsOrRecursesWithoutBrackets) {
  std::string laughs = "!t0 = tuple<f32, f32>\n";
  for (int i = 1; i < 60; ++i)
    laughs += "!t" + std::to_string(i) + " = tuple<!t" + std::to_string(i - 1) + ", !t" + std::to_string(i - 1) + ">\n";
  EXPECT_NE(importError(laughs).find("found the alias !t0"), std::string::npos);
  EXPECT_NE(importError("#map = affine_map<(d0) -> (" + repeat("-", 100000) + "d0)>").find("expected"),
            std::string::npos);
  EXPECT_NE(importError("mt.model @m { } { x = affine_map<(d0) -> (" + repeat("- ", 100000) + "d0)> }")
                .find("no affine maps"),
            std::string::npos);
}

TEST(ReadModel, BoundsTensors) {
  auto variable = [](const std::string &type) {
    return importError("mt.model @m {\n  %w = mt.variable \"w\" init(zeros) : " + type + "\n}");
  };
  EXPECT_EQ(variable("tensor<9999999x9999999xf32>"),
            "model.mlir:2:8: error: expected tensors of 2^46 bytes at most, found 'tensor<9999999x9999999xf32>'");
  EXPECT_EQ(variable("tensor<2147483648x2147483648x2147483648x2147483648xf32>")
                .find("model.mlir:2:8: error: expected tensors of 2^46"),
            0u);
  EXPECT_EQ(variable("tensor<9223372036854775807xf32>"),
            "model.mlir:2:8: error: expected dimensions below 2^40, found 9223372036854775807");
  EXPECT_NE(variable("tensor<92233720368547758070xf32>").find("model.mlir:2:"), std::string::npos);
  EXPECT_NE(variable("tensor<1x1x1x1x1x1x1x1x1xf32>").find("rank 8 at most, found 9"), std::string::npos);
}

TEST(ReadModel, TellsOtherFormatsApart) {
  EXPECT_NE(importError("ML\xefR\x06").find("found MLIR bytecode: print it as text first"), std::string::npos);
  EXPECT_NE(importError(std::string("PK\x03\x04", 4)).find("found a zip archive"), std::string::npos);
  EXPECT_NE(importError("\x89HDF\r\n").find("found an HDF5 file"), std::string::npos);
  EXPECT_NE(importError("MTPLAN\r\n").find("found a plan"), std::string::npos);
  EXPECT_EQ(importError(std::string("a\0b", 3)), "model.mlir:1:2: error: expected text, found a zero byte");
  EXPECT_NE(importError("").find("expected an mt.model, found none"), std::string::npos);
}

TEST(ReadModel, WantsOneModelAndNothingElse) {
  std::string second = model;
  second.replace(second.find("@small"), 6, "@other");
  EXPECT_NE(importError(model + second).find("expected one mt.model in a file, found a second"), std::string::npos);
  EXPECT_NE(importError("mt.program @train_step {\n}\n")
                .find("error: expected only an mt.model at the top, found 'mt.program'"),
            std::string::npos);
}

// Every prefix of a model is a wrong model or a whole one, and every deleted line an error or another model: nothing
// crashes.
TEST(ReadModel, SurvivesTruncation) {
  for (size_t size = 0; size < model.size(); ++size)
    EXPECT_NE(importError(model.substr(0, size)), "") << size;
}
