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
  EXPECT_EQ(spec.folder, "some/dir");
  EXPECT_FALSE(spec.test);
  EXPECT_TRUE(spec.scale);
  EXPECT_EQ(spec.begin, 0);
  EXPECT_EQ(spec.end, -1);
}

TEST(Spec, Keys) {
  DataSpec spec;
  ASSERT_TRUE(parseDataSpec("mnist:d,split=test,range=10:20,scale=1,classes=7", spec).ok());
  EXPECT_TRUE(spec.test);
  EXPECT_FALSE(spec.scale);
  EXPECT_EQ(spec.begin, 10);
  EXPECT_EQ(spec.end, 20);
  EXPECT_EQ(spec.classes, 7);
  ASSERT_TRUE(parseDataSpec("mnist:d,range=5:", spec).ok());
  EXPECT_EQ(spec.begin, 5);
  EXPECT_EQ(spec.end, -1);
}

TEST(Spec, ClassWeights) {
  DataSpec spec;
  ASSERT_TRUE(parseDataSpec("mnist:d,class-weight=3:2.5+7:0,split=test", spec).ok());
  EXPECT_EQ(spec.classWeights, (std::vector<std::pair<int64_t, float>>{{3, 2.5f}, {7, 0.0f}}));
  for (std::string bad : {"", "3", "3:", ":1", "3:1+", "256:1", "-1:1", "3:-1", "3:nan", "3:inf", "3:1e99", "3:1x"})
    EXPECT_EQ(problem("mnist:d,class-weight=" + bad),
              "1: data: expected class-weight=CLASS:WEIGHT[+CLASS:WEIGHT...], found \"class-weight=" + bad + "\"");
}

TEST(Spec, Messages) {
  EXPECT_EQ(problem("cifar:d"),
            "1: data: expected \"mnist:DIR[,split=train|test][,range=BEGIN:END][,scale=1]\", found \"cifar:d\"");
  EXPECT_EQ(problem("mnist:"), "1: data: expected a folder after \"mnist:\", found \"mnist:\"");
  EXPECT_EQ(problem("mnist:d,split=dev"), "1: data: expected split=train or split=test, found \"split=dev\"");
  EXPECT_EQ(problem("mnist:d,range=9:3"), "1: data: expected range=BEGIN:END with BEGIN < END, found \"range=9:3\"");
  EXPECT_EQ(problem("mnist:d,range=-1:3"), "1: data: expected range=BEGIN:END with BEGIN < END, found \"range=-1:3\"");
  EXPECT_EQ(problem("mnist:d,scale=2"), "1: data: expected scale=1 or scale=1/255, found \"scale=2\"");
  EXPECT_EQ(problem("mnist:d,shuffle=1"),
            "1: data: expected split=, range=, scale=, classes= or class-weight=, found \"shuffle=1\"");
  EXPECT_EQ(problem("mnist:d,test"), "1: data: expected key=value, found \"test\" in \"mnist:d,test\"");
}
