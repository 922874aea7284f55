// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/CodeObject.h"

#include "runtime/plan/Check.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mtrun {
namespace {

#if defined(__x86_64__)
constexpr uint16_t machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t machine = EM_AARCH64;
#endif

std::string missingFeatures(const mt::plan::Target &target, bool (*has)(std::string_view)) {
  std::string missing;
  for (uint32_t i = 0; i < count(target.features()); ++i)
    if (!has(target.features()->Get(i)->string_view()))
      missing += (missing.empty() ? "" : ", ") + target.features()->Get(i)->str();
  return missing;
}

bool writeAll(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

} // namespace

Status chooseTarget(const Plan &plan, const char *forced, bool (*has)(std::string_view), uint32_t &index) {
  const auto *targets = plan.tables().targets();
  std::string names, lacks;
  for (uint32_t i = 0; i < count(targets); ++i) {
    const mt::plan::Target &target = *targets->Get(i);
    if (target.device() && target.device()->string_view() != "cpu")
      continue;
    names += (names.empty() ? "" : ", ") + target.name()->str();
    if (forced && target.name()->string_view() != forced)
      continue;
    std::string missing = missingFeatures(target, has);
    if (missing.empty()) {
      index = i;
      return {};
    }
    lacks += (lacks.empty() ? "" : "; ") + target.name()->str() + " needs " + missing;
  }
  if (names.empty())
    return {MT_DEVICE, "expected code for a CPU in the plan, found none"};
  if (lacks.empty())
    return {MT_INVALID, "expected one of the plan's targets (" + names + "), found " + forced};
  return {MT_DEVICE, "the plan has no code that this CPU can run: " + lacks};
}

CodeObject::~CodeObject() {
  if (handle_)
    dlclose(handle_);
  if (fd_ >= 0)
    close(fd_);
}

Status CodeObject::load(std::span<const uint8_t> elf, const std::string &name) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof(header))
    return {MT_CORRUPT,
            "target " + name + ": expected a shared object, found " + std::to_string(elf.size()) + " bytes"};
  std::memcpy(&header, elf.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_DYN)
    return {MT_CORRUPT, "target " + name + ": expected a 64-bit ELF shared object, found other bytes"};
  if (header.e_machine != machine)
    return {MT_DEVICE, "target " + name + ": expected code for machine " + std::to_string(machine) +
                           " of the ELF specification, found " + std::to_string(header.e_machine)};
  fd_ = memfd_create("mt-kernels", MFD_CLOEXEC);
  if (fd_ < 0 || !writeAll(fd_, elf))
    return {MT_DEVICE, std::string("cannot hold the plan's code in memory: ") + std::strerror(errno)};
  // dlopen() identifies an object by its path, so the descriptor stays open until the object is unloaded.
  std::string path = "/proc/self/fd/" + std::to_string(fd_);
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_)
    return {MT_CORRUPT, "target " + name + ": its code does not load: " + dlerror()};
  return {};
}

void *CodeObject::find(const char *symbol) const { return dlsym(handle_, symbol); }

} // namespace mtrun
