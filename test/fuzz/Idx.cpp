// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an IDX file, plain or gzip: the reader says no, or gives an array of the size that it says. The file
// is one in memory.
#include "runtime/data/Idx.h"
#include "test/fuzz/harness.h"

#include <string>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  static int file = memfd_create("idx", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data + 1, size - 1, 0) != static_cast<ssize_t>(size - 1))
    __builtin_trap();
  mtrun::IdxArray array;
  int rank = 1 + data[0] % 3;
  mtrun::Status status = mtrun::readIdx(path, rank, array);
  if (!status.ok() && status.message().empty())
    __builtin_trap();
  if (!status.ok())
    return 0;
  uint64_t product = 1;
  for (uint64_t dim : array.dims)
    product *= dim;
  readAll({array.bytes.get(), array.size});
  if (array.dims.size() != static_cast<size_t>(rank) || product != array.size)
    __builtin_trap();
  return 0;
}
