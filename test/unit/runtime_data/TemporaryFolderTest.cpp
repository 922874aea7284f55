// SPDX-License-Identifier: Apache-2.0
#include "Fixtures.h"
#include "runtime/support/temporary_folder.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

using namespace fixtures;
using mtrun::TemporaryFolder;
using Names = std::vector<std::string>;

namespace {
class TemporaryFolders : public testing::Test {
protected:
  TemporaryFolders() { setenv("TMPDIR", base.path().c_str(), 1); }
  ~TemporaryFolders() override { unsetenv("TMPDIR"); }
  TempFolder base;
};
} // namespace

TEST_F(TemporaryFolders, AreRemovedWithAllThatIsInThem) {
  {
    TemporaryFolder one, two;
    ASSERT_EQ(text(one.make()), "0");
    ASSERT_EQ(text(two.make()), "0");
    writeFile(one.path() + "/f", "some");
    EXPECT_EQ(base.entries().size(), 2u); // the first one's owner lives
    EXPECT_EQ(readFile(one.path() + "/f"), "some");
  }
  EXPECT_EQ(base.entries(), Names{});
}

TEST_F(TemporaryFolders, RemoveWhatKilledProcessesLeft) {
  pid_t child = fork();
  if (child == 0) {
    TemporaryFolder folder;
    bool made = folder.make().ok();
    writeFile(folder.path() + "/f", "some");
    _exit(made ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(base.entries().size(), 1u);
  std::filesystem::create_directory(base.path("another"));
  std::filesystem::create_directory_symlink(base.path("another"), base.path("mtc-files-link"));
  {
    TemporaryFolder folder;
    ASSERT_EQ(text(folder.make()), "0");
    EXPECT_EQ(base.entries().size(), 3u);
  }
  EXPECT_EQ(base.entries(), (Names{"another", "mtc-files-link"}));
}

TEST_F(TemporaryFolders, CannotBeMade) {
  setenv("TMPDIR", "/proc", 1);
  TemporaryFolder folder;
  EXPECT_TRUE(text(folder.make()).starts_with("7: cannot create the folder /proc/mtc-files-")) << text(folder.make());
}
