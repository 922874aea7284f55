// SPDX-License-Identifier: Apache-2.0
//
// Decoded pictures, in memory or in a file that the next run finds: a header, a hash for each sample (0: not there
// yet), the samples. A sample counts if its hash fits, so whatever a lost machine left in the file is harmless.
#pragma once

#include "runtime/support/status.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace mtrun {

// What a cache is of: files, their sizes and times, and what is made of them.
struct PictureKey {
  uint64_t low = 0, high = 0;
};

class PictureCache {
public:
  PictureCache() = default;
  PictureCache(const PictureCache &) = delete;
  PictureCache &operator=(const PictureCache &) = delete;
  ~PictureCache();

  // "memory", or the path of a file, which is made anew unless it is a cache of this key. MT_IO (no room on the disk,
  // used by another process), MT_INVALID (a file that is no cache), MT_NO_MEMORY.
  Status open(const std::string &where, const PictureKey &key, uint64_t samples, uint64_t floats);

  // The sample, or null. Any thread.
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
