// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/PictureCache.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mtrun {
namespace {

struct Header {
  char magic[8];
  uint64_t low, high, samples, floats, unused[3];
};
static_assert(sizeof(Header) == 64);
constexpr char cacheMagic[8] = {'M', 'T', 'P', 'I', 'C', 'S', '1', '\n'};

constexpr uint64_t busy = 1; // replaces the hash while a thread writes the sample

uint64_t hashOf(const float *values, uint64_t floats) {
  uint64_t hash = XXH3_64bits(values, floats * sizeof(float));
  return hash > busy ? hash : busy + 1;
}

} // namespace

PictureCache::~PictureCache() {
  if (base_)
    munmap(base_, bytes_);
  if (file_ >= 0)
    close(file_);
}

Status PictureCache::open(const std::string &where, const PictureKey &key, uint64_t samples, uint64_t floats) {
  path_ = where;
  floats_ = floats;
  uint64_t values = (sizeof(Header) + samples * 8 + 63) & ~uint64_t(63), sample = 0;
  if (__builtin_mul_overflow(samples, floats * sizeof(float), &sample) ||
      __builtin_add_overflow(values, sample, &bytes_) || bytes_ > uint64_t(1) << 46)
    return {MT_INVALID, "cache: " + std::to_string(samples) + " samples of " + std::to_string(floats) +
                            " values are more than a cache can hold"};
  bool memory = where == "memory";
  if (!memory)
    if (Status s = openFile(where, bytes_); !s.ok())
      return s;
  void *base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                    memory ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, file_, 0);
  if (base == MAP_FAILED)
    return {MT_NO_MEMORY, "cache: cannot have " + std::to_string(bytes_) + " bytes: " + strerror(errno)};
  base_ = static_cast<uint8_t *>(base);
  hashes_ = reinterpret_cast<std::atomic<uint64_t> *>(base_ + sizeof(Header));
  values_ = reinterpret_cast<float *>(base_ + values);
  auto *header = reinterpret_cast<Header *>(base_);
  Header wanted = {{}, key.low, key.high, samples, floats, {}};
  memcpy(wanted.magic, cacheMagic, sizeof cacheMagic);
  if (memcmp(header, &wanted, sizeof wanted) != 0) {
    memset(base_ + sizeof(Header), 0, samples * 8);
    *header = wanted;
  }
  for (uint64_t i = 0; i < samples; ++i) // left by a run that was killed
    if (hashes_[i].load(std::memory_order_relaxed) == busy)
      hashes_[i].store(0, std::memory_order_relaxed);
  return {};
}

Status PictureCache::openFile(const std::string &path, uint64_t bytes) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file_ < 0)
    return ioError("cannot open the cache", path, errno);
  struct stat facts;
  if (fstat(file_, &facts) != 0 || !S_ISREG(facts.st_mode))
    return {MT_IO, "cannot use the cache " + path + ": it is not a regular file"};
  if (flock(file_, LOCK_EX | LOCK_NB) != 0)
    return {MT_IO, "cannot use the cache " + path + ": another run or source uses it; expected a file for each"};
  char magic[sizeof cacheMagic] = {};
  if (facts.st_size > 0 &&
      (pread(file_, magic, sizeof magic, 0) != sizeof magic || memcmp(magic, cacheMagic, sizeof cacheMagic) != 0))
    return {MT_INVALID, "cache: expected a new file or a cache of pictures, found something else in " + path};
  // Disk space is allocated before the file is mapped, so that a full disk is an error here and not a SIGBUS later.
  if (ftruncate(file_, static_cast<off_t>(bytes)) != 0)
    return ioError("cannot make the cache", path, errno);
  if (int error = posix_fallocate(file_, 0, static_cast<off_t>(bytes)); error != 0)
    return ioError("cannot make the cache", path, error);
  return {};
}

const float *PictureCache::find(uint64_t sample) const {
  uint64_t hash = hashes_[sample].load(std::memory_order_acquire);
  const float *values = values_ + sample * floats_;
  return hash > busy && hashOf(values, floats_) == hash ? values : nullptr;
}

void PictureCache::put(uint64_t sample, const float *values) {
  // Two threads may have computed the same sample; one of them writes it.
  uint64_t before = hashes_[sample].load(std::memory_order_relaxed);
  if (before == busy || !hashes_[sample].compare_exchange_strong(before, busy, std::memory_order_acquire))
    return;
  memcpy(values_ + sample * floats_, values, floats_ * sizeof(float));
  hashes_[sample].store(hashOf(values, floats_), std::memory_order_release);
}

} // namespace mtrun
