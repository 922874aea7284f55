// SPDX-License-Identifier: Apache-2.0
//
// What outlives the loss of a process, and what a process of an earlier start of a run may no longer write.
#include "Sample.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/RescueFolder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace fixtures;
using namespace mtrun;

static const std::string runName = "0123456789abcdef0123456789abcdef";

TEST(Incarnation, IsALine) {
  Incarnation own = {runName, 3, "s-1"}, read;
  EXPECT_EQ(incarnationText(own), runName + " 3 s-1\n");
  EXPECT_TRUE(parseIncarnation(incarnationText(own), read));
  EXPECT_EQ(read, own);
  for (const std::string &wrong :
       {std::string(), runName, runName + " 3 -", runName + " 0 -\n", runName + " -1 -\n", runName + " 3x -\n",
        runName + " 3 -\nmore", runName + " 3  \n", runName + " 99999999999999999999 -\n",
        runName + " 9223372036854775807 -\n", "../" + runName.substr(3) + " 3 -\n", runName + "0 3 -\n",
        runName + " 3 " + std::string(65, 'a') + "\n", runName + "\n3 -"})
    EXPECT_FALSE(parseIncarnation(wrong, read)) << wrong;
}

TEST(CheckpointFolder, AProcessOfAnEarlierStartWritesNothing) {
  TempFolder folder;
  Disk disk;
  CheckpointFolder first, second, stranger;
  ASSERT_EQ(text(first.open(disk, folder.path(), "one")), "0");
  ASSERT_EQ(text(first.claim(true)), "0");
  EXPECT_EQ(first.incarnation().number, 1);
  ASSERT_EQ(text(first.write(Sample(1).manifest, Sample(1).tensors())), "0");
  // The first process is stopped and keeps its lock. Its supervisor starts another.
  EXPECT_EQ(text(stranger.open(disk, folder.path(), "two")),
            "1: another run writes its checkpoints to " + folder.path());
  ASSERT_EQ(text(second.open(disk, folder.path(), "one")), "0");
  ASSERT_EQ(text(second.claim(true)), "0");
  EXPECT_EQ(second.incarnation(), (Incarnation{first.incarnation().run, 2, "one"}));
  ASSERT_EQ(text(second.write(Sample(5).manifest, Sample(5).tensors())), "0");
  // It wakes up.
  EXPECT_EQ(text(first.write(Sample(2).manifest, Sample(2).tensors())),
            "9: expected start 1 of this run in " + folder.path() +
                ", found start 2: this process is one of an earlier start, and writes nothing");
  first.prune(0, false, "");
  EXPECT_EQ(checkpointSteps(folder.path()), (std::vector<int64_t>{5, 1}));
  second.prune(1, false, "");
  EXPECT_EQ(checkpointSteps(folder.path()), (std::vector<int64_t>{5}));
}

// The disk that lets another start claim the folder just before a checkpoint gets its name.
class SlowDisk : public Disk {
public:
  int fsync(int descriptor) override {
    if (++syncs == 3) // the files are complete
      between();
    return Disk::fsync(descriptor);
  }
  int syncs = 0;
  std::function<void()> between;
};

TEST(CheckpointFolder, NoNameIsGivenAfterAnotherStart) {
  TempFolder folder;
  SlowDisk slow;
  Disk disk;
  CheckpointFolder first, second;
  ASSERT_EQ(text(first.open(slow, folder.path(), "one")), "0");
  slow.between = [] {};
  ASSERT_EQ(text(first.claim(true)), "0");
  slow.syncs = 0;
  slow.between = [&] {
    ASSERT_EQ(text(second.open(disk, folder.path(), "one")), "0");
    ASSERT_EQ(text(second.claim(true)), "0");
  };
  EXPECT_EQ(first.write(Sample(2).manifest, Sample(2).tensors()).code(), MT_LOST);
  EXPECT_EQ(checkpointSteps(folder.path()), (std::vector<int64_t>{}));
  EXPECT_EQ(folder.entries(), (std::vector<std::string>{".incarnation"})); // nothing half-written
}

TEST(CheckpointFolder, AnotherRunInTheFolderHasAnotherName) {
  TempFolder folder;
  Disk disk;
  std::string before;
  for (bool sameRun : {false, true, false}) {
    CheckpointFolder run;
    ASSERT_EQ(text(run.open(disk, folder.path())), "0");
    ASSERT_EQ(text(run.claim(sameRun)), "0");
    EXPECT_EQ(run.incarnation().run == before, sameRun);
    EXPECT_EQ(run.incarnation().number, sameRun ? 2 : 1);
    before = run.incarnation().run;
    run.keep();
  }
  CheckpointFolder last;
  ASSERT_EQ(text(last.open(disk, folder.path())), "0");
  ASSERT_EQ(text(last.claim(true)), "0");
  EXPECT_EQ(last.incarnation().run, before);
}

TEST(CheckpointFolder, ARunWithoutCheckpointsLeavesNothing) {
  TempFolder folder;
  Disk disk;
  {
    CheckpointFolder run;
    ASSERT_EQ(text(run.open(disk, folder.path())), "0");
    ASSERT_EQ(text(run.claim(false)), "0");
  }
  EXPECT_EQ(folder.entries(), (std::vector<std::string>{}));
}

TEST(RescueFolder, KeepsTheNewestOfAllProcesses) {
  TempFolder folder;
  std::string root = folder.path("rescue");
  RescueFolder first, second, other;
  ASSERT_EQ(text(first.open(root, {runName, 1}, 100, false)), "0");
  ASSERT_EQ(text(second.open(root, {runName, 1}, 100, false)), "0");
  struct stat facts;
  ASSERT_EQ(stat(root.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  ASSERT_EQ(text(first.write(Sample(4).manifest, Sample(4).tensors())), "0");
  ASSERT_EQ(text(second.write(Sample(5).manifest, Sample(5).tensors())), "0");
  EXPECT_EQ(checkpointSteps(root + "/" + runName), (std::vector<int64_t>{5}));
  ASSERT_EQ(text(first.write(Sample(4).manifest, Sample(4).tensors())), "0"); // there is a later one
  EXPECT_EQ(checkpointSteps(root + "/" + runName), (std::vector<int64_t>{5}));
  Checkpoint read;
  std::vector<std::string> skipped;
  EXPECT_TRUE(findNewest(first.path(), read, skipped));
  EXPECT_EQ(read.manifest.state.step, 5);
  // Another run finds nothing, and makes nothing.
  ASSERT_EQ(text(other.open(root, {std::string(32, 'a'), 1}, 100, true)), "0");
  EXPECT_FALSE(other.opened());
  // A later start in one process, which keeps nothing, goes on and is complete.
  RescueFolder alone;
  ASSERT_EQ(text(alone.open(root, {runName, 2}, 100, true)), "0");
  EXPECT_TRUE(alone.opened());
  alone.remove();
  EXPECT_EQ(std::filesystem::exists(root + "/" + runName), false);
}

TEST(RescueFolder, AProcessOfAnEarlierStartWritesNothing) {
  TempFolder folder;
  std::string root = folder.path("rescue");
  RescueFolder first, second;
  ASSERT_EQ(text(first.open(root, {runName, 1}, 100, false)), "0");
  ASSERT_EQ(text(second.open(root, {runName, 2}, 100, false)), "0"); // after 3 seconds: the first is alive
  ASSERT_EQ(text(second.write(Sample(5).manifest, Sample(5).tensors())), "0");
  EXPECT_EQ(first.write(Sample(9).manifest, Sample(9).tensors()).code(), MT_LOST);
  first.remove();
  EXPECT_EQ(checkpointSteps(root + "/" + runName), (std::vector<int64_t>{5}));
}

TEST(RescueFolder, RefusesWhatOthersMayWrite) {
  TempFolder folder;
  RescueFolder open, link, room, nowhere;
  std::filesystem::create_directory(folder.path("open"));
  ASSERT_EQ(chmod(folder.path("open").c_str(), 0755), 0);
  std::string user = std::to_string(geteuid());
  EXPECT_EQ(text(open.open(folder.path("open"), {runName, 1}, 1, false)),
            "1: " + folder.path("open") + ": expected a folder of user " + user +
                " with mode 0700, found one of user " + user + " with mode 0755");
  std::filesystem::create_directory_symlink(folder.path("open"), folder.path("link"));
  EXPECT_EQ(text(link.open(folder.path("link"), {runName, 1}, 1, false)),
            "1: " + folder.path("link") + ": expected a folder, found a link or a file");
  Status status = room.open(folder.path("room"), {runName, 1}, uint64_t{1} << 60, false);
  EXPECT_EQ(status.code(), MT_IO);
  EXPECT_NE(status.message().find("expected 1152921504607895552 free bytes in "), std::string::npos)
      << status.message();
  EXPECT_FALSE(room.opened());
  EXPECT_EQ(nowhere.open(folder.path("a/b/c"), {runName, 1}, 1, false).code(), MT_IO);
}
