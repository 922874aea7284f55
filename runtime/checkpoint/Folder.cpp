// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Folder.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

// Beside the variables: the header, the manifest, and blocks of the file system that are begun.
constexpr uint64_t kOverhead = 1 << 20;

CheckpointFolder::~CheckpointFolder() {
  if (lock_ >= 0)
    close(lock_);
}

static Status makeFolders(Disk &disk, const std::string &path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string folder = path.substr(0, slash);
    if (disk.mkdir(folder.c_str()) != 0 && errno != EEXIST)
      return ioError("cannot create", folder, errno);
    if (slash == std::string::npos)
      return {};
  }
}

Status CheckpointFolder::open(Disk &disk, const std::string &folder) {
  disk_ = &disk;
  folder_ = folder;
  while (folder_.size() > 1 && folder_.back() == '/')
    folder_.pop_back();
  if (Status s = makeFolders(disk, folder_); !s.ok())
    return s;
  std::string lock = folder_ + "/.lock";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0)
    return ioError("cannot write", lock, errno);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? Status(MT_INVALID, "another run writes its checkpoints to " + folder_)
                                : ioError("cannot lock", lock, errno);
  std::vector<std::string> leftovers;
  if (DIR *listing = opendir(folder_.c_str())) {
    while (dirent *entry = readdir(listing))
      if (std::string name = entry->d_name; name.starts_with(kTemporary))
        leftovers.push_back(name);
    closedir(listing);
  }
  for (const std::string &name : leftovers)
    disk.removeFolder(folder_ + "/" + name);
  return {};
}

Status CheckpointFolder::checkRoom(uint64_t bytes) const {
  errno = 0;
  uint64_t free = disk_->freeBytes(folder_.c_str()), want = 0;
  if (free == 0 && errno != 0)
    return ioError("cannot measure the room in", folder_, errno);
  if (__builtin_add_overflow(bytes, kOverhead, &want) || free < want)
    return {MT_IO, "expected " + std::to_string(want) + " free bytes for a checkpoint in " + folder_ + ", found " +
                       std::to_string(free)};
  return {};
}

// The name goes first, in one step: what is half removed is no checkpoint.
void CheckpointFolder::remove(int64_t step) const {
  std::string name = checkpointName(step), path = folder_ + "/" + name;
  std::string gone = folder_ + "/" + kTemporary + "removed-" + name;
  disk_->removeFolder(gone);
  if (disk_->rename(path.c_str(), gone.c_str()) == 0)
    disk_->removeFolder(gone);
}

void CheckpointFolder::prune(int64_t keep, bool largest) const {
  std::vector<int64_t> steps = checkpointSteps(folder_);
  if (static_cast<int64_t>(steps.size()) <= keep)
    return;
  int64_t best = -1;
  double bestValue = 0;
  for (int64_t step : steps) { // newest first: of equals the oldest is the best
    Manifest manifest;
    if (!readManifest(folder_ + "/" + checkpointName(step), manifest).ok() || !manifest.monitored ||
        std::isnan(*manifest.monitored))
      continue;
    double value = largest ? -*manifest.monitored : *manifest.monitored;
    if (best < 0 || value <= bestValue) {
      best = step;
      bestValue = value;
    }
  }
  for (size_t i = static_cast<size_t>(keep); i < steps.size(); ++i)
    if (steps[i] != best)
      remove(steps[i]);
}

void CheckpointFolder::removeAfter(int64_t step) const {
  for (int64_t other : checkpointSteps(folder_))
    if (other > step)
      remove(other);
}

std::string CheckpointFolder::setAside(int64_t step) const {
  std::string name = checkpointName(step), aside = folder_ + "/damaged-" + name;
  disk_->removeFolder(aside);
  return disk_->rename((folder_ + "/" + name).c_str(), aside.c_str()) == 0 ? aside : "";
}

} // namespace mtrun
