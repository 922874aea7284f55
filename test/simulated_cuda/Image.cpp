// SPDX-License-Identifier: Apache-2.0
//
// Code of the target "cuda:simulated".
#include "Simulator.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simulated {

bool loadImage(const void *image, CUmod_st &module) {
  auto *bytes = static_cast<const char *>(image);
  Elf64_Ehdr header;
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0)
    return false;
  std::memcpy(&header, bytes, sizeof header);
  if (header.e_type != ET_DYN)
    return false;
  size_t size = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes + header.e_phoff + i * header.e_phentsize, sizeof segment);
    size = std::max<size_t>(size, segment.p_offset + segment.p_filesz);
  }
  module.fd = memfd_create("simulated-kernels", MFD_CLOEXEC);
  if (module.fd < 0 || write(module.fd, bytes, size) != static_cast<ssize_t>(size))
    fatal("cannot hold an image in memory");
  std::string path = "/proc/self/fd/" + std::to_string(module.fd);
  module.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module.library)
    fatal(std::string("an image does not load: ") + dlerror());
  return true;
}

void unloadImage(CUmod_st &module) {
  if (module.library)
    dlclose(module.library);
  if (module.fd >= 0)
    close(module.fd);
}

} // namespace simulated
