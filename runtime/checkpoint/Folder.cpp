// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Folder.h"

#include "runtime/support/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

CheckpointFolder::~CheckpointFolder() {
  if (!incarnation_.run.empty() && !keeps_ && checkpointSteps(folder_).empty() && stillOurs().ok())
    disk_->unlink(descriptor_, incarnationFile);
  for (int descriptor : {descriptor_, lock_})
    if (descriptor >= 0)
      close(descriptor);
}

// Locks the folder itself: a lock file could be removed, and the next run would then lock a new file.
Status CheckpointFolder::lock() {
  Status lockedElsewhere(MT_INVALID, "another run writes its checkpoints to " + folder_);
  const std::string &supervisor = incarnation_.supervisor;
  bool isSuccessor = !supervisor.empty() && readIncarnation(descriptor_).supervisor == supervisor;
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0)
    return {};
  if (errno == EWOULDBLOCK)
    return isSuccessor ? Status() : lockedElsewhere;
  // NFS can lock only files that are open for writing, so a file is locked there.
  lock_ = openat(descriptor_, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (lock_ < 0)
    return ioError("cannot write", folder_ + "/.lock", errno);
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0)
    return {};
  if (errno == EWOULDBLOCK)
    return isSuccessor ? Status() : lockedElsewhere;
  return ioError("cannot lock", folder_ + "/.lock", errno);
}

static bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns true if `text` begins with "step-N", where N has 12 digits or more. `rest` receives the text after N.
static bool isStep(std::string_view text, std::string_view &rest) {
  if (!text.starts_with("step-"))
    return false;
  text.remove_prefix(5);
  size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  rest = text.substr(end);
  return end >= 12;
}

// Returns true for the names of temporary folders: .tmp-step-N-PROCESS, .tmp-step-N-PROCESS-old, .tmp-removed-step-N.
// `step` receives the original name of a folder "-old".
static bool isTemporary(std::string_view name, std::string &step) {
  std::string_view rest;
  if (name.starts_with(removedPrefix))
    return isStep(name.substr(std::strlen(removedPrefix)), rest) && rest.empty();
  if (!name.starts_with(temporaryPrefix) || !isStep(name.substr(std::strlen(temporaryPrefix)), rest) ||
      !rest.starts_with('-'))
    return false;
  name = name.substr(std::strlen(temporaryPrefix), name.size() - std::strlen(temporaryPrefix) - rest.size());
  rest.remove_prefix(1);
  if (rest.ends_with("-old")) {
    step = name;
    rest.remove_suffix(4);
  }
  return isNumber(rest);
}

// Removes the folders of unfinished saves.
void CheckpointFolder::tidy() {
  std::vector<std::string> names;
  int again = ::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); // closedir() closes it
  if (DIR *listing = fdopendir(again)) {
    while (dirent *entry = readdir(listing))
      names.push_back(entry->d_name);
    closedir(listing);
  }
  std::sort(names.begin(), names.end());
  for (const std::string &name : names) {
    std::string step;
    std::string_view rest;
    struct stat facts;
    if (isTemporary(name, step)) {
      if (!step.empty() && fstatat(descriptor_, step.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 &&
          disk_->isCheckpoint(descriptor_, name))
        disk_->rename(descriptor_, name.c_str(), step.c_str());
      else if (!disk_->removeCheckpoint(descriptor_, name))
        strangers_.push_back(name);
    } else if (isStep(name, rest) && rest.empty() && !disk_->isCheckpoint(descriptor_, name)) {
      strangers_.push_back(name);
    }
  }
}

Status CheckpointFolder::claim(bool sameRun) {
  Incarnation before = readIncarnation(descriptor_);
  std::string supervisor = incarnation_.supervisor.empty() ? "-" : incarnation_.supervisor;
  if (!sameRun || before.run.empty()) {
    before.number = 0;
    if (Status s = drawRun(before.run); !s.ok())
      return s;
  }
  Incarnation own = {before.run, before.number + 1, supervisor};
  if (Status s = writeIncarnation(*disk_, descriptor_, folder_, own); !s.ok())
    return s;
  incarnation_ = own;
  return {};
}

Status CheckpointFolder::stillOurs() const {
  return incarnation_.run.empty() ? Status() : expectIncarnation(descriptor_, folder_, incarnation_);
}

Status CheckpointFolder::open(Disk &disk, const std::string &folder, const std::string &supervisor) {
  disk_ = &disk;
  incarnation_.supervisor = supervisor;
  folder_ = folder;
  while (folder_.size() > 1 && folder_.back() == '/')
    folder_.pop_back();
  if (Status s = makeFolders(folder_); !s.ok())
    return s;
  descriptor_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0)
    return ioError("cannot open", folder_, errno);
  if (Status s = lock(); !s.ok())
    return s;
  tidy();
  return {};
}

Status CheckpointFolder::write(Manifest manifest, std::vector<SafeTensor> tensors) const {
  if (Status s = stillOurs(); !s.ok())
    return s;
  return writeCheckpoint(*disk_, descriptor_, folder_, std::move(manifest), std::move(tensors),
                         [this] { return stillOurs(); });
}

Status CheckpointFolder::begin(int64_t step, const VariablesFile &file, std::string &place) const {
  if (Status s = stillOurs(); !s.ok())
    return s;
  return beginCheckpoint(*disk_, descriptor_, folder_, step, file, place);
}

Status CheckpointFolder::end(Manifest manifest, const VariablesFile &file, const CheckTensor &check) const {
  return endCheckpoint(*disk_, descriptor_, folder_, std::move(manifest), file, check, [this] { return stillOurs(); });
}

Status CheckpointFolder::checkRoom(uint64_t bytes) const {
  errno = 0;
  uint64_t free = disk_->freeBytes(descriptor_), want = 0;
  if (free == 0 && errno != 0)
    return ioError("cannot measure the free bytes in", folder_, errno);
  if (__builtin_add_overflow(bytes, checkpointOverhead, &want) || free < want)
    return {MT_IO, "expected " + std::to_string(want) + " free bytes for a checkpoint in " + folder_ + ", found " +
                       std::to_string(free)};
  return {};
}

// Renames the checkpoint before it is removed, so that a partly removed folder is not taken for a checkpoint. Returns
// false if the folder is not a checkpoint.
bool CheckpointFolder::remove(int64_t step) const {
  std::string name = checkpointName(step), gone = removedPrefix + name;
  if (!disk_->isCheckpoint(descriptor_, name))
    return false;
  disk_->removeCheckpoint(descriptor_, gone);
  if (disk_->rename(descriptor_, name.c_str(), gone.c_str()) == 0)
    disk_->removeCheckpoint(descriptor_, gone);
  return true;
}

void CheckpointFolder::prune(int64_t keep, bool largest, const std::string &monitor, int64_t keptStep) const {
  std::vector<int64_t> steps = checkpointSteps(folder_);
  if (static_cast<int64_t>(steps.size()) <= keep || !stillOurs().ok())
    return;
  int64_t best = -1;
  double bestValue = 0;
  for (int64_t step : steps) { // newest first: if several are equal, the oldest is the best
    Manifest manifest;
    if (!readManifest(folder_ + "/" + checkpointName(step), manifest).ok() || !manifest.monitored ||
        manifest.monitor != monitor || std::isnan(*manifest.monitored))
      continue;
    double value = largest ? -*manifest.monitored : *manifest.monitored;
    if (best < 0 || value <= bestValue) {
      best = step;
      bestValue = value;
    }
  }
  for (size_t i = static_cast<size_t>(keep); i < steps.size(); ++i)
    if (steps[i] != best && steps[i] != keptStep)
      remove(steps[i]);
}

void CheckpointFolder::removeAfter(int64_t step) const {
  for (int64_t other : checkpointSteps(folder_))
    if (other > step && !remove(other) && disk_->unlink(descriptor_, checkpointName(other).c_str()) != 0)
      setAside(other);
}

std::string CheckpointFolder::setAside(int64_t step) const {
  std::string name = checkpointName(step), aside = "damaged-" + name;
  disk_->removeCheckpoint(descriptor_, aside);
  return disk_->rename(descriptor_, name.c_str(), aside.c_str()) == 0 ? folder_ + "/" + aside : "";
}

} // namespace mtrun
