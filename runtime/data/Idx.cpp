// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Idx.h"
#include "runtime/data/gzip_buffer.h"
#include "runtime/device/AvailableMemory.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace mtrun {
namespace {

constexpr unsigned chunk = 1u << 20;

// A gzFile reads plain files unchanged and inflates compressed files.
struct IdxReader {
  gzFile file = nullptr;
  uint64_t fileSize = 0;
  ~IdxReader() {
    if (file)
      gzclose_r(file);
  }
  Status open(const std::string &path, int descriptor);
  // Reads up to `size` bytes. `got` is smaller only at the end of the data.
  Status read(const std::string &path, uint8_t *data, uint64_t size, uint64_t &got);
};

} // namespace

Status IdxReader::open(const std::string &path, int descriptor) {
  struct stat facts;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    close(descriptor);
    return {MT_IO, "cannot read " + path + ": it is not a regular file"};
  }
  fileSize = static_cast<uint64_t>(facts.st_size);
  file = gzdopen(descriptor, "rb");
  if (!file) {
    close(descriptor);
    return {MT_NO_MEMORY, "cannot read " + path + ": out of memory"};
  }
  gzbuffer(file, gzipBuffer(fileSize));
  return {};
}

Status IdxReader::read(const std::string &path, uint8_t *data, uint64_t size, uint64_t &got) {
  got = 0;
  while (got < size) {
    unsigned want = static_cast<unsigned>(std::min<uint64_t>(size - got, chunk));
    errno = 0;
    int count = gzread(file, data + got, want);
    if (count < 0) {
      int code = Z_OK;
      const char *reason = gzerror(file, &code);
      if (code == Z_ERRNO)
        return ioError("cannot read", path, errno);
      // zlib reports a truncated stream as a buffer error. The caller reports the missing bytes more clearly.
      if (code == Z_BUF_ERROR)
        return {};
      return {MT_CORRUPT, path + ": damaged gzip data: " + reason};
    }
    if (count == 0)
      return {};
    got += static_cast<uint64_t>(count);
  }
  return {};
}

static Status openEither(const std::string &path, IdxReader &reader, std::string &opened) {
  for (const char *suffix : {"", ".gz"}) {
    opened = path + suffix;
    int descriptor = ::open(opened.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0)
      return reader.open(opened, descriptor);
    if (errno != ENOENT)
      return ioError("cannot open", opened, errno);
  }
  return ioError("cannot open", path + " or " + path + ".gz", ENOENT);
}

static std::string dimsText(const std::vector<uint64_t> &dims) {
  std::string text;
  for (uint64_t dim : dims)
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

static Status readHeader(IdxReader &reader, int rank, IdxArray &array) {
  uint8_t header[4 + 4 * 8];
  uint64_t want = 4 + 4 * static_cast<uint64_t>(rank), got;
  if (Status s = reader.read(array.path, header, want, got); !s.ok())
    return s;
  if (got != want)
    return {MT_CORRUPT, array.path + ": expected an IDX header of " + std::to_string(want) + " bytes, found " +
                            std::to_string(got) + " bytes"};
  if (header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != rank) {
    char text[128];
    snprintf(text, sizeof text, ": expected the IDX magic 0x%08x (u8, rank %d), found 0x%02x%02x%02x%02x",
             0x800u | rank, rank, header[0], header[1], header[2], header[3]);
    return {MT_CORRUPT, array.path + text};
  }
  array.size = 1;
  bool overflow = false;
  for (int i = 0; i < rank; ++i) {
    const uint8_t *d = header + 4 + 4 * i;
    uint64_t dim = uint64_t(d[0]) << 24 | uint64_t(d[1]) << 16 | uint64_t(d[2]) << 8 | d[3];
    array.dims.push_back(dim);
    overflow |= __builtin_mul_overflow(array.size, dim, &array.size);
  }
  // gzdirect() is valid only after the first read.
  uint64_t inflation = gzdirect(reader.file) ? 1 : maxInflation;
  if (overflow || array.size / inflation > reader.fileSize)
    return {MT_CORRUPT, array.path + ": the header says " + dimsText(array.dims) + " bytes, more than a file of " +
                            std::to_string(reader.fileSize) + " bytes can hold"};
  return {};
}

Status readIdx(const std::string &path, int rank, IdxArray &array) {
  array = {};
  IdxReader reader;
  if (Status s = openEither(path, reader, array.path); !s.ok())
    return s;
  if (Status s = readHeader(reader, rank, array); !s.ok())
    return s;
  if (Status s = checkMemory(array.size, array.path + ": its elements"); !s.ok())
    return s;
  array.bytes.reset(new (std::nothrow) uint8_t[array.size ? array.size : 1]);
  if (!array.bytes)
    return {MT_NO_MEMORY, array.path + ": cannot allocate " + std::to_string(array.size) + " bytes"};
  uint64_t got, more;
  uint8_t extra;
  if (Status s = reader.read(array.path, array.bytes.get(), array.size, got); !s.ok())
    return s;
  if (got != array.size)
    return {MT_CORRUPT, array.path + ": expected " + std::to_string(array.size) + " bytes of elements (" +
                            dimsText(array.dims) + "), found " + std::to_string(got)};
  // Reading to the end makes zlib check the checksum.
  if (Status s = reader.read(array.path, &extra, 1, more); !s.ok())
    return s;
  if (more != 0)
    return {MT_CORRUPT, array.path + ": expected " + std::to_string(array.size) + " bytes of elements (" +
                            dimsText(array.dims) + "), found more"};
  int code = Z_OK;
  gzerror(reader.file, &code);
  if (code != Z_OK)
    return {MT_CORRUPT, array.path + ": the gzip data ends before its checksum"};
  return {};
}

} // namespace mtrun
