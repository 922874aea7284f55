// SPDX-License-Identifier: Apache-2.0
//
// Every system call of a save fails, once or with all that follow, or is the last that the process makes: the
// checkpoint that was there is whole each time, and so is the new one if it is there.
#include "Sample.h"
#include "runtime/checkpoint/Folder.h"

#include <algorithm>
#include <cerrno>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fixtures;
using namespace mtrun;

namespace {

// Calls count from 0. The n-th fails with `reason`, or ends the process.
class Faulty : public Disk {
public:
  int failAt = -1, reason = EIO, calls = 0;
  bool die = false, shortWrites = false, sticky = false;

  bool strike() {
    int call = calls++;
    if (failAt < 0 || call < failAt || (!sticky && call > failAt))
      return false;
    if (die)
      _exit(9);
    errno = reason;
    return true;
  }
  int open(int folder, const char *name, int flags, mode_t mode) override {
    return strike() ? -1 : Disk::open(folder, name, flags, mode);
  }
  ssize_t write(int descriptor, const void *data, size_t size) override {
    if (strike()) {
      if (size > 1) // a full disk takes what fits
        (void)!Disk::write(descriptor, data, size / 2);
      errno = reason;
      return -1;
    }
    return Disk::write(descriptor, data, shortWrites && size > 5 ? 5 : size);
  }
  ssize_t writeAt(int descriptor, const void *data, size_t size, uint64_t offset) override {
    if (strike()) {
      if (size > 1)
        (void)!Disk::writeAt(descriptor, data, size / 2, offset);
      errno = reason;
      return -1;
    }
    return Disk::writeAt(descriptor, data, shortWrites && size > 5 ? 5 : size, offset);
  }
  int reserve(int descriptor, uint64_t size) override { return strike() ? -1 : Disk::reserve(descriptor, size); }
  int fsync(int descriptor) override { return strike() ? -1 : Disk::fsync(descriptor); }
  int close(int descriptor) override {
    bool failed = strike();
    int result = Disk::close(descriptor);
    return failed ? (errno = reason, -1) : result;
  }
  int mkdir(int folder, const char *name) override { return strike() ? -1 : Disk::mkdir(folder, name); }
  int rename(int folder, const char *from, const char *to) override {
    return strike() ? -1 : Disk::rename(folder, from, to);
  }
  int exchange(int folder, const char *a, const char *b) override {
    return strike() ? -1 : Disk::exchange(folder, a, b);
  }
  int unlink(int folder, const char *name) override { return strike() ? -1 : Disk::unlink(folder, name); }
  int rmdir(int folder, const char *name) override { return strike() ? -1 : Disk::rmdir(folder, name); }
};

// Every write takes a little, and the n-th is interrupted before it takes anything.
class Interrupted : public Disk {
public:
  explicit Interrupted(int at) : at_(at) {}
  int writes = 0;

  ssize_t write(int descriptor, const void *data, size_t size) override {
    if (writes++ == at_)
      return errno = EINTR, -1;
    return Disk::write(descriptor, data, size > 64 ? 64 : size);
  }

private:
  int at_;
};

// The newest checkpoint of the folder that verifies is `before`, or the new one of step 20; none is damaged.
void expectWhole(const std::string &folder, int64_t before, int at) {
  Checkpoint read;
  std::vector<std::string> skipped;
  ASSERT_TRUE(findNewest(folder, read, skipped)) << "call " << at;
  EXPECT_TRUE(skipped.empty()) << "call " << at << ": " << skipped[0];
  EXPECT_TRUE(read.manifest.state.step == before || read.manifest.state.step == 20) << "call " << at;
}

// The weights are written in two pieces, as two processes write them.
Status writeTogether(Disk &disk, const std::string &path, const Sample &sample, bool damages = false) {
  std::vector<SafeTensor> tensors = sample.tensors();
  std::span<const std::byte> weights = std::exchange(tensors[0].bytes, {});
  VariablesFile file(tensors);
  size_t at = file.tensors[0].name == "dense/kernel" ? 0 : 1, half = weights.size() / 2;
  int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int64_t step = sample.manifest.state.step;
  std::string place;
  Status status = beginCheckpoint(disk, folder, path, step, file, place);
  bool began = status.ok();
  for (size_t begin : {size_t(0), half})
    if (Disk::Piece piece = {file.offsets[at] + begin, weights.subspan(begin, damages ? half / 2 : half)}; status.ok())
      status = writePieces(disk, place, file.size, {&piece, 1});
  auto check = [&](size_t index, std::span<const std::byte> bytes) -> Status {
    return index == at && std::ranges::equal(bytes, weights) ? Status() : Status(MT_IO, "expected the weights");
  };
  if (status.ok())
    status = endCheckpoint(disk, folder, path, sample.manifest, file, check, {});
  else if (began)
    abandonCheckpoint(disk, folder, step);
  close(folder);
  return status;
}

using Write = Status (*)(Disk &disk, const std::string &path, const Sample &sample);
Status writeAlone(Disk &disk, const std::string &path, const Sample &sample) { return sample.write(disk, path); }
Status writeByTwo(Disk &disk, const std::string &path, const Sample &sample) {
  return writeTogether(disk, path, sample);
}

// A save with call number `at` failing, and all after it if `sticky`, for each `at` until none is reached.
void failEveryCall(Write write, int reason, bool sticky) {
  bool saved = false;
  for (int at = 0; !saved; ++at) {
    ASSERT_LT(at, 100);
    TempFolder folder;
    ASSERT_EQ(text(Sample(10).write(folder.path())), "0");
    Faulty disk;
    disk.failAt = at;
    disk.reason = reason;
    disk.sticky = sticky;
    Status status = write(disk, folder.path(), Sample(20));
    EXPECT_TRUE(status.ok() || status.code() == MT_IO) << status.message();
    saved = disk.calls <= at;
    EXPECT_TRUE(status.ok() || !saved);
    expectWhole(folder.path(), 10, at);
    // The next save finds nothing in its way.
    EXPECT_EQ(text(Sample(20).write(folder.path())), "0") << "call " << at;
    EXPECT_EQ(checkpointSteps(folder.path()), (std::vector<int64_t>{20, 10}));
  }
}

} // namespace

TEST(Fault, EveryCallFailsOnce) {
  for (int reason : {ENOSPC, EIO})
    for (Write write : {writeAlone, writeByTwo})
      failEveryCall(write, reason, false);
}

// A disk that is full stays full; one that is gone does not even remove what the save began.
TEST(Fault, EveryCallFailsFromThereOn) {
  for (int reason : {ENOSPC, EIO, EROFS})
    for (Write write : {writeAlone, writeByTwo})
      failEveryCall(write, reason, true);
}

// A signal in a write, on a disk that takes a little at a time: the save goes on and is whole.
TEST(Fault, EveryWriteIsInterrupted) {
  for (int at = 0, writes = 1; at < writes; ++at) {
    TempFolder folder;
    Interrupted disk(at);
    EXPECT_EQ(text(Sample(20).write(disk, folder.path())), "0");
    Checkpoint read;
    EXPECT_EQ(text(readCheckpoint(folder.path(checkpointName(20)), read)), "0") << "write " << at;
    writes = disk.writes;
    ASSERT_GT(writes, 8);
  }
}

// Older checkpoints leave one file at a time, and what is left in between has no checkpoint's name.
TEST(Fault, EveryCallOfPruning) {
  bool pruned = false;
  for (int at = 0; !pruned; ++at) {
    ASSERT_LT(at, 100);
    TempFolder folder;
    Faulty disk;
    CheckpointFolder checkpoints;
    ASSERT_EQ(text(checkpoints.open(disk, folder.path())), "0");
    for (int64_t step : {10, 15, 20})
      ASSERT_EQ(text(Sample(step).write(folder.path())), "0");
    disk.calls = 0;
    disk.failAt = at;
    checkpoints.prune(1, false, "loss");
    pruned = disk.calls <= at;
    expectWhole(folder.path(), 20, at);
    for (int64_t step : checkpointSteps(folder.path())) {
      Checkpoint read;
      EXPECT_EQ(text(readCheckpoint(folder.path(checkpointName(step)), read)), "0") << "call " << at;
    }
  }
}

void endAtEveryCall(Write write) {
  bool saved = false;
  for (int at = 0; !saved; ++at) {
    ASSERT_LT(at, 100);
    TempFolder folder;
    ASSERT_EQ(text(Sample(10).write(folder.path())), "0");
    pid_t child = fork();
    if (child == 0) {
      Faulty disk;
      disk.failAt = at;
      disk.die = true;
      Status status = write(disk, folder.path(), Sample(20));
      _exit(status.ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
    saved = WEXITSTATUS(status) == 0;
    expectWhole(folder.path(), 10, at);
  }
}

TEST(Fault, EveryCallIsTheLast) {
  for (Write write : {writeAlone, writeByTwo})
    endAtEveryCall(write);
}

// What several processes write has the bytes of a save by one, and what differs from what they sent is no checkpoint.
TEST(Fault, SeveralProcessesWriteTheBytesOfOne) {
  TempFolder one, two;
  Disk disk;
  ASSERT_EQ(text(Sample(20).write(one.path())), "0");
  ASSERT_EQ(text(writeTogether(disk, two.path(), Sample(20))), "0");
  for (const char *file : {"/variables.safetensors", "/manifest.json"}) {
    std::vector<std::byte> expected, found;
    ASSERT_TRUE(readWholeFile(one.path(checkpointName(20)) + file, expected).ok());
    ASSERT_TRUE(readWholeFile(two.path(checkpointName(20)) + file, found).ok());
    EXPECT_EQ(expected, found);
  }
  EXPECT_EQ(text(writeTogether(disk, two.path(), Sample(30), true)), "7: expected the weights");
  EXPECT_EQ(checkpointSteps(two.path()), std::vector<int64_t>{20});
}

TEST(Fault, ReplacingOne) {
  bool saved = false;
  for (int at = 0; !saved; ++at) {
    ASSERT_LT(at, 100);
    TempFolder folder;
    ASSERT_EQ(text(Sample(20, 1).write(folder.path())), "0");
    Faulty disk;
    disk.failAt = at;
    (void)Sample(20, 9).write(disk, folder.path());
    saved = disk.calls <= at;
    expectWhole(folder.path(), 20, at);
  }
}

TEST(Fault, ShortWrites) {
  TempFolder folder;
  Faulty disk;
  disk.shortWrites = true;
  ASSERT_EQ(text(Sample(20).write(disk, folder.path())), "0");
  expectWhole(folder.path(), 20, -1);
}

// No disk takes nothing and says that all is well for ever.
TEST(Fault, AWriteOfNothing) {
  class Idle : public Disk {
    ssize_t write(int, const void *, size_t) override { return 0; }
  } disk;
  TempFolder folder;
  std::string message = text(Sample(20).write(disk, folder.path()));
  EXPECT_TRUE(message.ends_with("/variables.safetensors: Input/output error")) << message;
}

TEST(Fault, MessageNamesTheFile) {
  TempFolder folder;
  Faulty disk;
  disk.failAt = 3; // mkdir, the folder, the file, the first write
  disk.reason = ENOSPC;
  std::string message = text(Sample(20).write(disk, folder.path()));
  EXPECT_TRUE(message.ends_with("/variables.safetensors: No space left on device")) << message;
}
