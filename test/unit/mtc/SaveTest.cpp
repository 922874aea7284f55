// SPDX-License-Identifier: Apache-2.0
#include "Model.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <unistd.h>

using namespace mtctest;
namespace fs = std::filesystem;

namespace {

struct SaveTest : testing::Test {
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
    mtc_options options = mtc_options_init();
    options.stop_after = "import";
    made = compile(model, options);
    ASSERT_EQ(made.code, MT_OK) << made.message;
  }
  void TearDown() override { fs::remove_all(folder); }

  Outcome save(const fs::path &path) { return take(mtc_result_save(made.result.get(), path.c_str()), nullptr); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  fs::path folder = fs::temp_directory_path() / ("mtc-save-" + std::to_string(getpid()));
  Outcome made;
};

} // namespace

TEST_F(SaveTest, WritesAndReplaces) {
  for (int i = 0; i < 2; ++i) {
    Outcome saved = save(folder / "a.mlir");
    ASSERT_EQ(saved.code, MT_OK) << saved.message;
  }
  std::ifstream file(folder / "a.mlir");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), made.bytes());
  EXPECT_EQ(files(), 1u);
}

TEST_F(SaveTest, SaysWhyAFolderThatIsNotThereCannotBeWritten) {
  Outcome saved = save(folder / "none" / "a.mlir");
  EXPECT_EQ(saved.code, MT_IO);
  EXPECT_NE(saved.message.find((folder / "none" / "a.mlir").string()), std::string::npos) << saved.message;
  EXPECT_NE(saved.message.find("No such file or directory"), std::string::npos) << saved.message;
}

TEST_F(SaveTest, LeavesNothingBehindAndTheOldFileAsItWas) {
  fs::create_directory(folder / "taken");
  Outcome saved = save(folder / "taken");
  EXPECT_EQ(saved.code, MT_IO);
  EXPECT_NE(saved.message.find("Is a directory"), std::string::npos) << saved.message;
  EXPECT_EQ(files(), 1u);
}

TEST_F(SaveTest, RefusesToReplaceADevice) {
  Outcome saved = save("/dev/null");
  EXPECT_EQ(saved.code, MT_IO);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}
