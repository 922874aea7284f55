// SPDX-License-Identifier: Apache-2.0
//
// Caches decoded pictures in memory, or in a file for later runs: a header, a hash per sample (0: missing), the
// samples. A sample is used only if its hash matches, so a partly written file is harmless.
#pragma once

#include "runtime/support/status.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace mtrun {

// Identifies the contents of a cache: the files with sizes and times, and their conversion.
struct PictureKey {
  uint64_t low = 0, high = 0;
};

class PictureCache {
public:
  PictureCache() = default;
  PictureCache(const PictureCache &) = delete;
  PictureCache &operator=(const PictureCache &) = delete;
  ~PictureCache();

  // Opens a cache in memory ("memory") or in a file. The file is created again unless it is a cache with this key.
  // MT_IO (no space on the disk, or another process uses the file), MT_INVALID (the file is not a cache), MT_NO_MEMORY.
  Status open(const std::string &where, const PictureKey &key, uint64_t samples, uint64_t floats);

  // Returns the sample, or null. Any thread may call find() and put().
  const float *find(uint64_t sample) const;
  void put(uint64_t sample, const float *values);

private:
  Status openFile(const std::string &path, uint64_t bytes);

  std::string path_;
  int file_ = -1;
  uint8_t *base_ = nullptr;
  uint64_t bytes_ = 0, floats_ = 0;
  std::atomic<uint64_t> *hashes_ = nullptr;
  float *values_ = nullptr;
};

} // namespace mtrun
