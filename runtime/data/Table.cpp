// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Table.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/gzip_buffer.h"
#include "runtime/device/AvailableMemory.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace mtrun {

size_t storedSize(Stored type) {
  switch (type) {
  case Stored::U8:
  case Stored::Bool:
  case Stored::I8:
    return 1;
  case Stored::U16:
  case Stored::I16:
  case Stored::F16:
    return 2;
  case Stored::I32:
  case Stored::U32:
  case Stored::F32:
    return 4;
  case Stored::I64:
  case Stored::F64:
    return 8;
  }
  return 1;
}

const char *storedName(Stored type) {
  static const char *const names[] = {"u8", "bool", "i8", "u16", "i16", "i32", "u32", "i64", "f32", "f64", "f16"};
  return names[static_cast<int>(type)];
}

uint64_t Field::elements() const {
  uint64_t product = 1;
  for (uint64_t dim : shape)
    product *= dim;
  return product;
}

Status sampleRange(const DataSpec &spec, const Field &field, uint64_t &begin, uint64_t &end) {
  begin = static_cast<uint64_t>(spec.begin);
  end = spec.end < 0 ? field.samples : static_cast<uint64_t>(spec.end);
  if (field.samples == 0)
    return {MT_INVALID, field.where + ": expected samples, found none"};
  if (begin >= end || end > field.samples)
    return {MT_INVALID, "data: the range " + std::to_string(begin) + ":" + std::to_string(end) + " is not within the " +
                            std::to_string(field.samples) + " samples of " + field.where};
  return {};
}

float halfValue(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 0) {
    float tiny = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -tiny : tiny;
  }
  return std::bit_cast<float>(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

std::shared_ptr<const uint8_t> share(std::vector<uint8_t> &&bytes) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  return {owner, owner->data()};
}

namespace {

// A file that zlib inflates if it is gzip data.
struct GzipFile {
  gzFile file = nullptr;
  ~GzipFile() {
    if (file)
      gzclose_r(file);
  }
  // Reads up to `size` bytes. `got` is smaller only at the end.
  Status read(const std::string &path, uint8_t *out, uint64_t size, uint64_t &got) const;
};

} // namespace

Status GzipFile::read(const std::string &path, uint8_t *out, uint64_t size, uint64_t &got) const {
  got = 0;
  while (got < size) {
    int count = gzread(file, out + got, static_cast<unsigned>(std::min<uint64_t>(size - got, 1 << 30)));
    if (count > 0) {
      got += static_cast<uint64_t>(count);
      continue;
    }
    int code = Z_OK;
    const char *reason = gzerror(file, &code);
    if (code == Z_ERRNO)
      return ioError("cannot read", path, errno);
    return code == Z_OK ? Status() : Status(MT_CORRUPT, path + ": damaged gzip data: " + reason);
  }
  return {};
}

// Computes an upper bound of the inflated bytes. Counts them exactly if the bound exceeds the available memory.
static Status measure(const std::string &path, uint64_t fileSize, const GzipFile &file, uint64_t &bytes) {
  uint64_t got = 0;
  bytes = fileSize;
  if (gzdirect(file.file))
    return checkMemory(bytes, path);
  if (checkMemory(fileSize * maxInflation, path).ok())
    return {};
  std::vector<uint8_t> room(1 << 16);
  bytes = 0;
  do {
    if (Status s = file.read(path, room.data(), room.size(), got); !s.ok())
      return s;
    bytes += got;
  } while (got == room.size());
  gzrewind(file.file);
  return checkMemory(bytes, path + ": the inflated data");
}

static Status readAll(int descriptor, const std::string &path, std::vector<uint8_t> &bytes) {
  struct stat facts;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    close(descriptor);
    return {MT_IO, "cannot read " + path + ": it is not a regular file"};
  }
  GzipFile file = {gzdopen(descriptor, "rb")};
  if (!file.file) {
    close(descriptor);
    return {MT_NO_MEMORY, "cannot read " + path + ": out of memory"};
  }
  gzbuffer(file.file, gzipBuffer(static_cast<uint64_t>(facts.st_size)));
  uint64_t size = 0, got = 0, more = 0;
  if (Status s = measure(path, static_cast<uint64_t>(facts.st_size), file, size); !s.ok())
    return s;
  bytes.resize(size + 1); // an additional byte, so that a file of exactly this size ends in the first read
  while (true) {
    if (Status s = file.read(path, bytes.data() + got, bytes.size() - got, more); !s.ok())
      return s;
    got += more;
    if (got < bytes.size())
      break;
    bytes.resize(bytes.size() * 2);
  }
  bytes.resize(got);
  return {};
}

Status readData(const std::string &path, std::vector<uint8_t> &bytes, std::string &opened) {
  for (const char *suffix : {"", ".gz"}) {
    opened = path + suffix;
    int descriptor = ::open(opened.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0)
      return readAll(descriptor, opened, bytes);
    if (errno != ENOENT)
      return ioError("cannot open", opened, errno);
  }
  return ioError("cannot open", path + " or " + path + ".gz", ENOENT);
}

Status openTable(const DataSpec &spec, Table &table) {
  if (spec.source)
    if (Status s = spec.source->open(spec, table); !s.ok())
      return s;
  for (const Field &field : table.fields)
    if (field.samples != table.fields[0].samples)
      return {MT_INVALID, table.fields[0].where + " has " + std::to_string(table.fields[0].samples) + " samples, " +
                              field.where + (field.where == table.fields[0].where ? " (" + field.name + ")" : "") +
                              " has " + std::to_string(field.samples)};
  return {};
}

} // namespace mtrun
