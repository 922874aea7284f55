// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/RescueFolder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace mtrun {

constexpr mode_t ownerOnly = 0700, others = 077;
constexpr const char *writerFile = ".writer";          // locked by the process that writes
constexpr auto patience = std::chrono::seconds(60);    // for another process of this host, which writes
constexpr auto lastPatience = std::chrono::seconds(3); // for processes of the start before, which may still write

std::string defaultRescueFolder() { return "/dev/shm/mtrun-" + std::to_string(geteuid()); }

RescueFolder::~RescueFolder() {
  for (int descriptor : {root_, folder_, writer_})
    if (descriptor >= 0)
      close(descriptor);
}

// Everything inside the folder is then this user's too.
static Status checkOwner(int folder, const std::string &path) {
  struct stat facts = {};
  if (fstat(folder, &facts) != 0)
    return ioError("cannot open", path, errno);
  char mode[16];
  snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(facts.st_mode & 07777));
  if (facts.st_uid == geteuid() && (facts.st_mode & others) == 0)
    return {};
  return {MT_INVALID, path + ": expected a folder of user " + std::to_string(geteuid()) +
                          " with mode 0700, found one of user " + std::to_string(facts.st_uid) + " with mode " + mode};
}

Status RescueFolder::openRoot(const std::string &root, bool find) {
  if (!find && mkdir(root.c_str(), ownerOnly) != 0 && errno != EEXIST)
    return ioError("cannot create", root, errno);
  root_ = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (root_ < 0 && find && errno == ENOENT)
    return {};
  if (root_ < 0 && (errno == ELOOP || errno == ENOTDIR))
    return {MT_INVALID, root + ": expected a folder, found a link or a file"};
  return root_ < 0 ? ioError("cannot open", root, errno) : checkOwner(root_, root);
}

Status RescueFolder::open(const std::string &root, const Incarnation &incarnation, uint64_t bytes, bool find) {
  incarnation_ = incarnation;
  path_ = root + "/" + incarnation.run;
  if (Status s = openRoot(root, find); !s.ok() || root_ < 0)
    return s;
  if (!find && mkdirat(root_, incarnation.run.c_str(), ownerOnly) != 0 && errno != EEXIST)
    return ioError("cannot create", path_, errno);
  int folder = openat(root_, incarnation.run.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return find && errno == ENOENT ? Status() : ioError("cannot open", path_, errno);
  folder_ = folder;
  if (find)
    return {};
  Status status = succeed();
  if (uint64_t free = disk_.freeBytes(folder_); status.ok() && free < bytes + checkpointOverhead)
    status = {MT_IO, "expected " + std::to_string(bytes + checkpointOverhead) + " free bytes in " + root + ", found " +
                         std::to_string(free)};
  if (!status.ok()) {
    close(folder_);
    folder_ = -1;
  }
  return status;
}

// Every process holds a shared lock on the folder. The first process of a start waits until
// no process has one.
Status RescueFolder::succeed() {
  auto limit = std::chrono::steady_clock::now() + lastPatience;
  while (readIncarnation(folder_).number < incarnation_.number && flock(folder_, LOCK_EX | LOCK_NB) != 0 &&
         std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  Status status = lockWriter();
  if (status.ok() && readIncarnation(folder_).number < incarnation_.number)
    status = writeIncarnation(disk_, folder_, path_, incarnation_);
  unlockWriter();
  (void)flock(folder_, LOCK_SH | LOCK_NB);
  return status;
}

Status RescueFolder::lockWriter() {
  writer_ = disk_.open(folder_, writerFile, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (writer_ < 0)
    return ioError("cannot create", path_ + "/" + writerFile, errno);
  for (auto limit = std::chrono::steady_clock::now() + patience; flock(writer_, LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= limit)
      return ioError("cannot lock", path_ + "/" + writerFile, errno);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

void RescueFolder::unlockWriter() {
  if (writer_ >= 0)
    disk_.close(writer_);
  writer_ = -1;
}

Status RescueFolder::write(const Manifest &manifest, std::vector<SafeTensor> tensors) {
  Status status = lockWriter();
  if (status.ok())
    status = expectIncarnation(folder_, path_, incarnation_);
  std::vector<int64_t> steps = checkpointSteps(path_);
  Manifest newest;
  bool there = status.ok() && !steps.empty() && steps.front() >= manifest.state.step &&
               readManifest(path_ + "/" + checkpointName(steps.front()), newest).ok() &&
               (steps.front() > manifest.state.step || newest.state.epoch >= manifest.state.epoch);
  if (status.ok() && !there)
    status = writeCheckpoint(disk_, folder_, path_, manifest, std::move(tensors),
                             [this] { return expectIncarnation(folder_, path_, incarnation_); });
  for (int64_t step : steps)
    if (status.ok() && !there && step < manifest.state.step)
      disk_.removeCheckpoint(folder_, checkpointName(step));
  unlockWriter();
  return status;
}

void RescueFolder::remove() {
  if (folder_ < 0 || readIncarnation(folder_).number > incarnation_.number) // a later start uses it
    return;
  for (int64_t step : checkpointSteps(path_))
    disk_.removeCheckpoint(folder_, checkpointName(step));
  for (const char *file : {writerFile, incarnationFile})
    disk_.unlink(folder_, file);
  (void)unlinkat(root_, incarnation_.run.c_str(), AT_REMOVEDIR);
}

} // namespace mtrun
