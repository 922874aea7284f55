// SPDX-License-Identifier: Apache-2.0
#include "Sample.h"
#include "runtime/checkpoint/Folder.h"

#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;
using Names = std::vector<std::string>;

TEST(Checkpoint, ComesBack) {
  TempFolder folder;
  Sample sample;
  sample.manifest.monitor = "val_loss";
  sample.manifest.monitored = 0.1;
  ASSERT_EQ(text(sample.write(folder.path())), "0");
  EXPECT_EQ(folder.entries(), Names{"step-000000000007"});
  Checkpoint read;
  ASSERT_EQ(text(readCheckpoint(folder.path("step-000000000007"), read)), "0");
  const LoopState &state = read.manifest.state, &wrote = sample.manifest.state;
  EXPECT_EQ(read.manifest.model, "sample");
  EXPECT_EQ(read.manifest.plan, sample.manifest.plan);
  EXPECT_EQ(read.manifest.monitored, 0.1);
  EXPECT_EQ(state.seed, 42);
  EXPECT_EQ(state.epoch, 1);
  EXPECT_EQ(state.sums[0], wrote.sums[0]);
  EXPECT_TRUE(std::isnan(state.sums[1]));
  EXPECT_EQ(state.totals, wrote.totals);
  EXPECT_EQ(state.names, wrote.names);
  EXPECT_EQ(state.history, wrote.history);
  EXPECT_EQ(state.callbacks, wrote.callbacks);
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors[0].name, "steps"); // the larger element first
  EXPECT_EQ(read.tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(memcmp(read.tensors[1].bytes.data(), sample.weights.data(), 24), 0);
}

TEST(Checkpoint, SameStateSameBytes) {
  TempFolder first, second;
  ASSERT_EQ(text(Sample().write(first.path())), "0");
  ASSERT_EQ(text(Sample().write(second.path())), "0");
  for (const char *file : {"/manifest.json", "/variables.safetensors"})
    EXPECT_EQ(readFile(first.path("step-000000000007") + file), readFile(second.path("step-000000000007") + file));
}

TEST(Checkpoint, ReplacesOneOfTheSameStep) {
  TempFolder folder;
  ASSERT_EQ(text(Sample(7, 1).write(folder.path())), "0");
  ASSERT_EQ(text(Sample(7, 9).write(folder.path())), "0");
  EXPECT_EQ(folder.entries(), Names{"step-000000000007"});
  Checkpoint read;
  ASSERT_EQ(text(readCheckpoint(folder.path("step-000000000007"), read)), "0");
  EXPECT_EQ(reinterpret_cast<const float *>(read.tensors[1].bytes.data())[0], 9);
}

TEST(Checkpoint, NewestThatVerifies) {
  TempFolder folder;
  Checkpoint read;
  Names skipped;
  EXPECT_FALSE(findNewest(folder.path(), read, skipped));
  for (int64_t step : {9, 10, 11})
    ASSERT_EQ(text(Sample(step).write(folder.path())), "0");
  std::filesystem::remove(folder.path("step-000000000011/manifest.json"));
  std::filesystem::resize_file(folder.path("step-000000000010/variables.safetensors"), 100);
  writeFile(folder.path("step-12"), "not one of ours");
  ASSERT_TRUE(findNewest(folder.path(), read, skipped));
  EXPECT_EQ(read.manifest.state.step, 9);
  ASSERT_EQ(skipped.size(), 2u);
  EXPECT_NE(skipped[0].find("step-000000000011/manifest.json: No such file"), std::string::npos) << skipped[0];
  EXPECT_NE(skipped[1].find("variables.safetensors: expected"), std::string::npos) << skipped[1];
  EXPECT_NE(skipped[1].find("bytes, found 100"), std::string::npos) << skipped[1];
}

TEST(CheckpointFolder, KeepsTheNewestAndTheBest) {
  TempFolder folder;
  Disk disk;
  CheckpointFolder checkpoints;
  ASSERT_EQ(text(checkpoints.open(disk, folder.path("a/b/"))), "0");
  double losses[] = {0.9, 0.2, 0.2, 0.5, NAN, 0.4};
  for (int64_t step = 0; step < 6; ++step) {
    Sample sample(step);
    sample.manifest.monitored = losses[step];
    ASSERT_EQ(text(sample.write(checkpoints.path())), "0");
    checkpoints.prune(2, false, sample.manifest.monitor);
  }
  EXPECT_EQ(checkpointSteps(checkpoints.path()), (std::vector<int64_t>{5, 4, 1}));
  checkpoints.prune(2, true, Sample(0).manifest.monitor); // of those left, 0.4 is the largest, and among the newest
  EXPECT_EQ(checkpointSteps(checkpoints.path()), (std::vector<int64_t>{5, 4}));
  checkpoints.removeAfter(4);
  EXPECT_EQ(checkpointSteps(checkpoints.path()), (std::vector<int64_t>{4}));
}

TEST(CheckpointFolder, OneRunAtATime) {
  TempFolder folder;
  Disk disk;
  CheckpointFolder first, second;
  ASSERT_EQ(text(first.open(disk, folder.path())), "0");
  EXPECT_EQ(text(second.open(disk, folder.path())), "1: another run writes its checkpoints to " + folder.path());
}

// A user removed DIR/.lock and a second run wrote into the folder of the first.
TEST(CheckpointFolder, NoFileToRemoveLetsASecondRunIn) {
  TempFolder folder;
  Disk disk;
  CheckpointFolder first, second;
  ASSERT_EQ(text(first.open(disk, folder.path())), "0");
  for (const std::string &name : folder.entries())
    std::filesystem::remove_all(folder.path(name));
  EXPECT_EQ(text(second.open(disk, folder.path())), "1: another run writes its checkpoints to " + folder.path());
}

TEST(CheckpointFolder, Refuses) {
  TempFolder folder;
  Disk disk;
  CheckpointFolder within, room;
  writeFile(folder.path("file"), "");
  EXPECT_EQ(text(within.open(disk, folder.path("file/c"))),
            "7: cannot create " + folder.path("file/c") + ": Not a directory");
  struct Full : Disk {
    uint64_t freeBytes(int) override { return 2000000; }
  } full;
  ASSERT_EQ(text(room.open(full, folder.path())), "0");
  EXPECT_EQ(text(room.checkRoom(900000)), "0");
  EXPECT_EQ(text(room.checkRoom(1000000)),
            "7: expected 2048576 free bytes for a checkpoint in " + folder.path() + ", found 2000000");
}

TEST(CheckpointFolder, RemovesWhatWasNotFinished) {
  TempFolder folder;
  std::filesystem::create_directory(folder.path(".tmp-step-000000000009-1"));
  writeFile(folder.path(".tmp-step-000000000009-1/manifest.json"), "{");
  Disk disk;
  CheckpointFolder checkpoints;
  ASSERT_EQ(text(checkpoints.open(disk, folder.path())), "0");
  EXPECT_EQ(folder.entries(), Names{});
}

// A user's folder .tmp-mycache in the folder of checkpoints, and all files that a link there led to, were deleted.
TEST(CheckpointFolder, LeavesWhatIsNotItsOwn) {
  TempFolder folder, victim;
  writeFile(victim.path("manifest.json"), "theirs");
  writeFile(victim.path("notes.txt"), "theirs");
  std::filesystem::create_directory(folder.path(".tmp-mycache"));
  writeFile(folder.path(".tmp-mycache/notes.txt"), "x");
  std::filesystem::create_directory(folder.path(".tmp-step-000000000009-1"));
  writeFile(folder.path(".tmp-step-000000000009-1/notes.txt"), "x");
  for (const char *link : {".tmp-link", ".tmp-step-000000000008-2", ".tmp-removed-step-000000000007",
                           "step-000000000006", "damaged-step-000000000011"})
    std::filesystem::create_directory_symlink(victim.path(), folder.path(link));
  Names before = folder.entries();
  Disk disk;
  CheckpointFolder checkpoints;
  ASSERT_EQ(text(checkpoints.open(disk, folder.path())), "0");
  EXPECT_EQ(folder.entries(), before);
  EXPECT_EQ(checkpoints.strangers(), (Names{".tmp-removed-step-000000000007", ".tmp-step-000000000008-2",
                                            ".tmp-step-000000000009-1", "step-000000000006"}));
  for (int64_t step : {10, 11})
    ASSERT_EQ(text(Sample(step).write(folder.path())), "0");
  checkpoints.prune(1, false, "");
  EXPECT_EQ(checkpointSteps(folder.path()), (std::vector<int64_t>{11, 6}));
  EXPECT_EQ(checkpoints.setAside(11), ""); // what has the name stays
  checkpoints.removeAfter(5);              // asked for: the link goes, what it led to stays
  EXPECT_EQ(checkpointSteps(folder.path()), (std::vector<int64_t>{}));
  EXPECT_EQ(readFile(victim.path("manifest.json")), "theirs");
  EXPECT_EQ(readFile(victim.path("notes.txt")), "theirs");
  EXPECT_EQ(readFile(folder.path(".tmp-mycache/notes.txt")), "x");
  EXPECT_EQ(readFile(folder.path(".tmp-step-000000000009-1/notes.txt")), "x");
}

// Notes beside the files of a checkpoint were deleted with it.
TEST(CheckpointFolder, LeavesACheckpointWithOtherFiles) {
  TempFolder folder;
  Disk disk;
  CheckpointFolder checkpoints;
  ASSERT_EQ(text(checkpoints.open(disk, folder.path())), "0");
  for (int64_t step : {8, 9, 10})
    ASSERT_EQ(text(Sample(step).write(folder.path())), "0");
  writeFile(folder.path("step-000000000008/notes.txt"), "x");
  checkpoints.prune(1, false, "");
  EXPECT_EQ(checkpointSteps(folder.path()), (std::vector<int64_t>{10, 8}));
  EXPECT_EQ(readFile(folder.path("step-000000000008/notes.txt")), "x");
}

// On a file system that cannot exchange names, a kill between two renames left the folder without its only checkpoint.
TEST(CheckpointFolder, GivesAnOldOneItsNameBack) {
  TempFolder folder;
  ASSERT_EQ(text(Sample(7).write(folder.path())), "0");
  std::filesystem::rename(folder.path("step-000000000007"), folder.path(".tmp-step-000000000007-1-old"));
  ASSERT_EQ(text(Sample(7).write(folder.path())), "0");
  std::filesystem::rename(folder.path("step-000000000007"), folder.path(".tmp-step-000000000007-1"));
  Disk disk;
  CheckpointFolder checkpoints;
  ASSERT_EQ(text(checkpoints.open(disk, folder.path())), "0");
  EXPECT_EQ(folder.entries(), Names{"step-000000000007"});
}
