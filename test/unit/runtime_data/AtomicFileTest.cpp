// SPDX-License-Identifier: Apache-2.0
#include "Fixtures.h"
#include "runtime/support/atomic_file.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fixtures;
using mtrun::AtomicFile;
using Names = std::vector<std::string>;

TEST(AtomicFile, AppearsOnCommit) {
  TempFolder folder;
  writeFile(folder.path("f"), "old");
  AtomicFile file;
  ASSERT_EQ(text(file.open(folder.path("f"))), "0");
  ASSERT_EQ(text(file.write("new", 3)), "0");
  EXPECT_EQ(readFile(folder.path("f")), "old");
  ASSERT_EQ(text(file.commit()), "0");
  EXPECT_EQ(readFile(folder.path("f")), "new");
  EXPECT_EQ(folder.entries(), Names{"f"});
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  TempFolder folder;
  {
    AtomicFile file;
    ASSERT_EQ(text(file.open(folder.path("f"))), "0");
    ASSERT_EQ(text(file.write("new", 3)), "0");
    EXPECT_EQ(folder.entries(), Names{}); // it has no name yet
  }
  EXPECT_EQ(folder.entries(), Names{});
}

TEST(AtomicFile, UnwritablePath) {
  TempFolder folder;
  std::string missing = folder.path("none/f"), within = folder.path("file/f");
  AtomicFile first, second, third, fourth;
  EXPECT_EQ(text(first.open(missing)), "7: cannot create " + missing + ": No such file or directory");
  writeFile(folder.path("file"), "");
  EXPECT_EQ(text(second.open(within)), "7: cannot create " + within + ": Not a directory");
  EXPECT_EQ(text(third.open(folder.path())), "7: cannot write " + folder.path() + ": Is a directory");
  EXPECT_EQ(text(fourth.open("/dev/null")), "7: cannot write /dev/null: it is not a regular file");
}

TEST(AtomicFile, PermissionsAreThoseOfTheUmask) {
  TempFolder folder;
  mode_t before = umask(027);
  for (int turn = 0; turn < 2; ++turn) { // a new file, and one in the place of another
    AtomicFile file;
    ASSERT_EQ(text(file.open(folder.path("f"))), "0");
    ASSERT_EQ(text(file.commit()), "0");
    struct stat facts;
    ASSERT_EQ(stat(folder.path("f").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0640u);
  }
  umask(before);
}

// Of a file system without unnamed files, of an older version, or of a kill between a link and a rename.
TEST(AtomicFile, RemovesLeftovers) {
  TempFolder folder;
  for (const char *name : {"f.mtc-tmp-0", "f.mtc-tmp-1", "f.mtc-tmp-2", "g.mtc-tmp-0"})
    writeFile(folder.path(name), "half");
  AtomicFile file;
  ASSERT_EQ(text(file.open(folder.path("f"))), "0");
  ASSERT_EQ(text(file.commit()), "0");
  EXPECT_EQ(folder.entries(), (Names{"f", "g.mtc-tmp-0"}));
}

// A run that was killed left h.json.tmp-PID-N for good, and a hundred of one process number made "cannot create".
TEST(AtomicFile, KilledRunsLeaveNothing) {
  TempFolder folder;
  for (int i = 0; i < 120; ++i) {
    pid_t child = fork();
    if (child == 0) {
      AtomicFile file;
      _exit(file.open(folder.path("f")).ok() && file.write("new", 3).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << i;
  }
  EXPECT_EQ(folder.entries(), Names{});
  AtomicFile file;
  ASSERT_EQ(text(file.open(folder.path("f"))), "0");
  ASSERT_EQ(text(file.commit()), "0");
  EXPECT_EQ(folder.entries(), Names{"f"});
}

TEST(AtomicFile, TwoWritersOfAPath) {
  TempFolder folder;
  AtomicFile first, second;
  ASSERT_EQ(text(first.open(folder.path("f"))), "0");
  ASSERT_EQ(text(second.open(folder.path("f"))), "0");
  ASSERT_EQ(text(first.write("first", 5)), "0");
  ASSERT_EQ(text(second.write("second", 6)), "0");
  ASSERT_EQ(text(first.commit()), "0");
  EXPECT_EQ(readFile(folder.path("f")), "first");
  ASSERT_EQ(text(second.commit()), "0");
  EXPECT_EQ(readFile(folder.path("f")), "second");
  EXPECT_EQ(folder.entries(), Names{"f"});
}

// A link under the temporary file's name leads nowhere.
TEST(AtomicFile, FollowsNoLink) {
  TempFolder folder;
  writeFile(folder.path("victim"), "theirs");
  std::filesystem::create_symlink(folder.path("victim"), folder.path("f.mtc-tmp-0"));
  AtomicFile file;
  ASSERT_EQ(text(file.open(folder.path("f"))), "0");
  ASSERT_EQ(text(file.write("new", 3)), "0");
  ASSERT_EQ(text(file.commit()), "0");
  EXPECT_EQ(readFile(folder.path("f")), "new");
  EXPECT_EQ(readFile(folder.path("victim")), "theirs");
}

TEST(MakeFolders, EachThatIsNotThere) {
  TempFolder folder;
  EXPECT_EQ(text(mtrun::makeFolders(folder.path("a/b/c"))), "0");
  EXPECT_EQ(text(mtrun::makeFolders(folder.path("a/b/c"))), "0");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("a/b/c")));
  writeFile(folder.path("file"), "");
  EXPECT_EQ(text(mtrun::makeFolders(folder.path("file"))),
            "7: cannot create " + folder.path("file") + ": Not a directory");
  EXPECT_EQ(text(mtrun::makeFolders(folder.path("file/c"))),
            "7: cannot create " + folder.path("file/c") + ": Not a directory");
}

TEST(AtomicFile, FileSizeLimit) {
  TempFolder folder;
  std::string path = folder.path("f"), megabyte(1 << 20, 'x');
  struct rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 1 << 16;
  auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  {
    AtomicFile file;
    EXPECT_EQ(text(file.open(path)), "0");
    EXPECT_EQ(text(file.write(megabyte.data(), megabyte.size())), "7: cannot write " + path + ": File too large");
  }
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(folder.entries(), Names{});
}

TEST(AtomicFile, DiskFull) {
  TempFolder folder;
  std::string disk = folder.path("disk"), path = disk + "/f", megabyte(1 << 20, 'x');
  mkdir(disk.c_str(), 0700);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "only root may mount a small file system";
  {
    AtomicFile file;
    EXPECT_EQ(text(file.open(path)), "0");
    EXPECT_EQ(text(file.write(megabyte.data(), megabyte.size())),
              "7: cannot write " + path + ": No space left on device");
  }
  EXPECT_TRUE(std::filesystem::is_empty(disk));
  umount(disk.c_str());
}
