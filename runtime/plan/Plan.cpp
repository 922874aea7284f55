// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Plan.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

PlanBytes::~PlanBytes() {
  if (mapping_)
    munmap(mapping_, size_);
}

Status PlanBytes::map(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return ioError("cannot open", path, errno);
  struct stat info;
  Status status;
  if (fstat(fd, &info) != 0) {
    status = ioError("cannot read", path, errno);
  } else if (!S_ISREG(info.st_mode)) {
    status = {MT_IO, "cannot read " + path + ": expected a regular file"};
  } else if (info.st_size > 0) {
    void *mapping = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
      status = ioError("cannot map", path, errno);
    } else {
      mapping_ = mapping;
      data_ = static_cast<const uint8_t *>(mapping);
      size_ = static_cast<size_t>(info.st_size);
    }
  }
  close(fd);
  return status;
}

void PlanBytes::copy(const void *data, size_t size) {
  // Aligned as a mapping is, so that sections are too.
  owned_.reset(static_cast<uint8_t *>(::operator new(size + 1, std::align_val_t(MT_PLAN_ALIGNMENT))));
  if (size)
    std::memcpy(owned_.get(), data, size);
  data_ = owned_.get();
  size_ = size;
}

Status Plan::load(const std::string &path, std::unique_ptr<Plan> &plan) {
  auto loaded = std::make_unique<Plan>();
  if (Status status = loaded->bytes_.map(path); !status.ok())
    return status;
  if (Status status = loaded->open(); !status.ok())
    return std::move(status).in(path + ": ");
  plan = std::move(loaded);
  return {};
}

Status Plan::loadMemory(const void *data, size_t size, std::unique_ptr<Plan> &plan) {
  if (!data && size)
    return {MT_INVALID, "expected a plan's bytes, found a null pointer"};
  auto loaded = std::make_unique<Plan>();
  loaded->bytes_.copy(data, size);
  if (Status status = loaded->open(); !status.ok())
    return status;
  plan = std::move(loaded);
  return {};
}

Status Plan::open() {
  view_ = openPlanFile(bytes_.bytes());
  if (view_.fault != PlanFileFault::None)
    return {MT_CORRUPT, view_.message};
  return verifyPlan(*view_.tables);
}

Hash128 Plan::hash() const {
  mt_plan_header header; // of a file that was opened, so it is there
  memcpy(&header, bytes_.bytes().data(), sizeof header);
  return {header.tables_hash_low, header.tables_hash_high};
}

std::span<const uint8_t> Plan::constants() const {
  return tables().constants() < 0 ? std::span<const uint8_t>() : section(static_cast<uint32_t>(tables().constants()));
}

std::span<const uint8_t> Plan::initialValues() const {
  int32_t index = tables().initial_values();
  return index < 0 ? std::span<const uint8_t>() : section(static_cast<uint32_t>(index));
}

const mt::plan::Program *Plan::program(std::string_view name) const {
  const auto *programs = tables().programs();
  for (uint32_t i = 0; programs && i < programs->size(); ++i)
    if (programs->Get(i)->name()->string_view() == name)
      return programs->Get(i);
  return nullptr;
}

int Plan::variable(std::string_view name) const {
  const auto *variables = tables().variables();
  for (uint32_t i = 0; variables && i < variables->size(); ++i)
    if (variables->Get(i)->name()->string_view() == name)
      return static_cast<int>(i);
  return -1;
}

} // namespace mtrun
