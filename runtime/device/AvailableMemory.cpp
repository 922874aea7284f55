// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/AvailableMemory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>

namespace mtrun {

// Returns the integer on the line of `path` that starts with `key` (on the first line if `key` is empty); `otherwise`
// if there is none ("max").
static uint64_t readNumber(const char *path, const char *key, uint64_t otherwise) {
  FILE *file = std::fopen(path, "re");
  if (!file)
    return otherwise;
  char line[256];
  uint64_t result = otherwise;
  size_t length = std::strlen(key);
  while (std::fgets(line, sizeof(line), file)) {
    unsigned long long number;
    if (std::strncmp(line, key, length) == 0 && std::sscanf(line + length, " %llu", &number) == 1) {
      result = number;
      break;
    }
  }
  std::fclose(file);
  return result;
}

uint64_t availableMemory() {
  uint64_t available = readNumber("/proc/meminfo", "MemAvailable:", UINT64_MAX / 1024) * 1024;
  uint64_t limit = readNumber("/sys/fs/cgroup/memory.max", "", UINT64_MAX);
  uint64_t used = readNumber("/sys/fs/cgroup/memory.current", "", 0);
  // The page cache counts as used, but the kernel reclaims it on demand.
  uint64_t files = readNumber("/sys/fs/cgroup/memory.stat", "file ", 0);
  used -= std::min(used, files);
  return std::min(available, limit - std::min(limit, used));
}

Status checkMemory(uint64_t bytes, const std::string &what) {
  constexpr uint64_t unasked = 1 << 20; // no check for small sizes, because a check reads four files
  if (bytes <= unasked)
    return {};
  uint64_t available = availableMemory();
  struct rlimit own;
  if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
    available = std::min<uint64_t>(available, own.rlim_cur);
  if (bytes <= available / 4 * 3)
    return {};
  return {MT_NO_MEMORY, what + ": expected at most " + std::to_string(available / 4 * 3) +
                            " bytes, three quarters of the memory that is available, found " + std::to_string(bytes)};
}

} // namespace mtrun
