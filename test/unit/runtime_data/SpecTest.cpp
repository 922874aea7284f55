// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Spec.h"
#include "Fixtures.h"

#include <gtest/gtest.h>

using mtrun::DataSpec;
using mtrun::parseDataSpec;

static std::string problem(const std::string &spec) {
  DataSpec parsed;
  return fixtures::text(parseDataSpec(spec, parsed));
}

TEST(Spec, Folder) {
  DataSpec spec;
  ASSERT_TRUE(parseDataSpec("mnist:some/dir", spec).ok());
  EXPECT_EQ(spec.kind, "mnist");
  EXPECT_EQ(spec.paths, std::vector<std::string>{"some/dir"});
  EXPECT_FALSE(spec.test);
  EXPECT_EQ(spec.scale, 1);
  EXPECT_EQ(spec.divisor, 255);
  EXPECT_EQ(spec.begin, 0);
  EXPECT_EQ(spec.end, -1);
  ASSERT_TRUE(parseDataSpec("cifar10:d", spec).ok());
  EXPECT_FALSE(spec.scale); // as the file has it
}

TEST(Spec, Keys) {
  DataSpec spec;
  ASSERT_TRUE(parseDataSpec("mnist:d,split=test,range=10:20,scale=1,classes=7", spec).ok());
  EXPECT_TRUE(spec.test);
  EXPECT_EQ(spec.scale, 1);
  EXPECT_EQ(spec.divisor, 1);
  EXPECT_EQ(spec.begin, 10);
  EXPECT_EQ(spec.end, 20);
  EXPECT_EQ(spec.classes, 7);
  ASSERT_TRUE(parseDataSpec("mnist:d,range=5:", spec).ok());
  EXPECT_EQ(spec.begin, 5);
  EXPECT_EQ(spec.end, -1);
  ASSERT_TRUE(parseDataSpec("npy:x.npy,y.npy,mean=1:2:3,std=0.5", spec).ok());
  EXPECT_EQ(spec.paths, (std::vector<std::string>{"x.npy", "y.npy"}));
  EXPECT_EQ(spec.mean, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(spec.deviation, std::vector<double>{0.5});
  ASSERT_TRUE(parseDataSpec("cifar10:d,preprocess=caffe", spec).ok());
  EXPECT_TRUE(spec.reversed);
  EXPECT_EQ(spec.mean[0], 103.939);
}

TEST(Spec, ClassWeights) {
  DataSpec spec;
  ASSERT_TRUE(parseDataSpec("mnist:d,class-weight=3:2.5+7:0,split=test", spec).ok());
  EXPECT_EQ(spec.classWeights, (std::vector<std::pair<int64_t, float>>{{3, 2.5f}, {7, 0.0f}}));
  for (std::string bad : {"", "3", "3:", ":1", "3:1+", "-1:1", "3:-1", "3:nan", "3:inf", "3:1e99", "3:1x"})
    EXPECT_EQ(problem("mnist:d,class-weight=" + bad),
              "1: data: expected class-weight=CLASS:WEIGHT[+CLASS:WEIGHT...], found \"class-weight=" + bad + "\"");
}

// The help lists what the library reads, no more and no less.
TEST(Spec, EveryKindHasItsFormAndHelp) {
  int32_t count = 0;
  for (; mtrun_data_form(count); ++count) {
    DataSpec spec;
    std::string form = mtrun_data_form(count);
    EXPECT_TRUE(parseDataSpec(form.substr(0, form.find("=T")) + (form.ends_with("=T") ? "=2" : ""), spec).ok()) << form;
    EXPECT_STRNE(mtrun_data_help(count), "");
  }
  EXPECT_EQ(count, 10);
  EXPECT_EQ(mtrun_data_help(count), nullptr);
  EXPECT_EQ(mtrun_data_form(-1), nullptr);
}

TEST(Spec, WhatWasMeant) {
  auto meant = [](const char *text) {
    std::string message = problem(text);
    return message.substr(std::min(message.find("did you mean"), message.size()));
  };
  EXPECT_EQ(meant("mnst:d"), "did you mean mnist:?");
  EXPECT_EQ(meant("digits.csv"), "did you mean csv:digits.csv?");
  EXPECT_EQ(meant("mnist:d,splt=test"), "did you mean split?");
  EXPECT_EQ(meant("mnist:d,preproces=tf"), "did you mean preprocess?");
  EXPECT_EQ(meant("mnist:d,split=tset"), "did you mean test?");
  EXPECT_EQ(meant("csv:d,lable=y"), "did you mean label?");
  EXPECT_EQ(meant("images:d,flip=horizontl"), "did you mean horizontal?");
  EXPECT_EQ(meant("images:d,check=fulll"), "did you mean full?");
  EXPECT_EQ(meant("images:d,preprocess=caffee"), "did you mean caffe?");
  EXPECT_EQ(meant("mnist:d,frob=1"), "");
  EXPECT_EQ(meant("frob:d"), "");
}

TEST(Spec, Messages) {
  EXPECT_EQ(problem("cifar:d"),
            "1: data: expected mnist:, cifar10:, cifar100:, npy:, npz:, tokens:, text:, csv:, images: or "
            "tfrecord: and a path, "
            "found \"cifar:d\"; did you mean cifar10:?");
  EXPECT_EQ(problem("mnist:"), "1: data: expected a path after \"mnist:\", found \"mnist:\"");
  EXPECT_EQ(problem("mnist:d,split=dev"), "1: data: expected split=train or split=test, found \"split=dev\"");
  EXPECT_EQ(problem("mnist:d,range=9:3"), "1: data: expected range=BEGIN:END with BEGIN < END, found \"range=9:3\"");
  EXPECT_EQ(problem("mnist:d,range=-1:3"), "1: data: expected range=BEGIN:END with BEGIN < END, found \"range=-1:3\"");
  EXPECT_EQ(problem("mnist:d,scale=1/0"), "1: data: expected scale=X or scale=A/B, found \"scale=1/0\"");
  EXPECT_EQ(problem("mnist:d,std=1:0"),
            "1: data: expected std=X, or a number per channel as X:Y:Z, none of them 0, found \"std=1:0\"");
  EXPECT_EQ(problem("mnist:d,mean=a"), "1: data: expected mean=X, or a number per channel as X:Y:Z, found \"mean=a\"");
  EXPECT_EQ(problem("mnist:d,preprocess=keras"),
            "1: data: expected preprocess=caffe, preprocess=torch or preprocess=tf, found \"preprocess=keras\"");
  EXPECT_EQ(problem("mnist:d,shuffle=1"),
            "1: data: expected split=, range=, classes=, class-weight=, scale=, mean=, std= or "
            "preprocess=, found \"shuffle=1\"");
  EXPECT_EQ(problem("tokens:f,split=test"),
            "1: data: expected length=, stride=, range=, classes=, class-weight=, scale=, mean=, std= or "
            "preprocess=, found \"split=test\"");
  EXPECT_EQ(problem("tokens:f,length=0"), "1: data: expected length=T with T >= 1, found \"length=0\"");
  EXPECT_EQ(problem("text:f,length=8,stride=-1"), "1: data: expected stride=N with N >= 1, found \"stride=-1\"");
  EXPECT_EQ(problem("mnist:d,test"),
            "1: data: expected key=value, found \"test\" in \"mnist:d,test\"; a path that has a comma is written in "
            "double quotes");
}
