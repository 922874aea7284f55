// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Plan.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

Status PlanBytes::allocate(size_t size) {
  data_.reset(static_cast<uint8_t *>(::operator new(size, std::align_val_t(MT_PLAN_ALIGNMENT), std::nothrow)));
  if (!data_)
    return {MT_NO_MEMORY, "expected " + std::to_string(size) + " bytes of memory for the plan, found less"};
  // Large plans are mostly weights. With small pages, page faults would cost as much time as the read.
  constexpr size_t large = size_t{4} << 20;
  if (size >= large)
    madvise(data_.get(), size / MT_PLAN_ALIGNMENT * MT_PLAN_ALIGNMENT, MADV_HUGEPAGE); // failure is harmless
  size_ = size;
  return {};
}

// The file is read and not mapped: if another process overwrote or truncated a mapped file, the plan would change, or
// the process would end with SIGBUS.
Status PlanBytes::read(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return ioError("cannot open", path, errno);
  struct stat info;
  Status status;
  if (fstat(fd, &info) != 0)
    status = ioError("cannot read", path, errno);
  else if (!S_ISREG(info.st_mode))
    status = {MT_IO, "cannot read " + path + ": expected a regular file"};
  else
    status = allocate(static_cast<size_t>(info.st_size)).in(path + ": ");
  for (size_t at = 0; status.ok() && at < size_;) {
    ssize_t count = ::read(fd, data_.get() + at, size_ - at);
    if (count > 0)
      at += static_cast<size_t>(count);
    else if (count == 0)
      status = {MT_IO, "cannot read " + path + ": expected " + std::to_string(size_) + " bytes, found " +
                           std::to_string(at) + "; is it being written?"};
    else if (errno != EINTR)
      status = ioError("cannot read", path, errno);
  }
  close(fd);
  return status;
}

Status PlanBytes::copy(const void *data, size_t size) {
  if (Status status = allocate(size); !status.ok())
    return status;
  if (size)
    std::memcpy(data_.get(), data, size);
  return {};
}

Status Plan::load(const std::string &path, std::unique_ptr<Plan> &plan) {
  auto loaded = std::make_unique<Plan>();
  if (Status status = loaded->bytes_.read(path); !status.ok())
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
  if (Status status = loaded->bytes_.copy(data, size); !status.ok())
    return status;
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
  mt_plan_header header; // the plan has been opened, so the header exists
  memcpy(&header, bytes_.bytes().data(), sizeof header);
  return {header.tables_hash_low, header.tables_hash_high};
}

Hash128 Plan::stepsHash() const {
  Hash128 steps = {tables().steps_hash_low(), tables().steps_hash_high()};
  return steps == Hash128{} ? hash() : steps;
}

std::span<const uint8_t> Plan::constants() const {
  return tables().constants() < 0 ? std::span<const uint8_t>() : section(static_cast<uint32_t>(tables().constants()));
}

std::span<const uint8_t> Plan::initialValues() const {
  int32_t index = tables().initial_values();
  return index < 0 ? std::span<const uint8_t>() : section(static_cast<uint32_t>(index));
}

Status Plan::checkRows(int64_t n) const {
  if (const auto *fixed = tables().fixed_batch(); fixed && static_cast<uint64_t>(n) != fixed->rows())
    return {MT_INVALID, "expected steps of " + std::to_string(fixed->rows()) +
                            " samples, the number that the model's file has for its batch, found " + std::to_string(n) +
                            ": leave out a short last batch (--drop-remainder), or export the model with a batch "
                            "of any size"};
  if (n < 1 || static_cast<uint64_t>(n) > batch())
    return {MT_INVALID, "expected 1 to " + std::to_string(batch()) + " samples, found " + std::to_string(n)};
  return {};
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
