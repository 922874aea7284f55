// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Records.h"
#include "runtime/data/Table.h"
#include "runtime/support/crc32c.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {
namespace {

constexpr uint64_t headSize = 12, tailSize = 4;
constexpr uint64_t maxRecord = uint64_t(1) << 30;

template <typename T> T load(const uint8_t *bytes) {
  T value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

bool isHead(const uint8_t *bytes) { return maskedCrc32c(bytes, 8) == load<uint32_t>(bytes + 8); }

// RFC 1950, section 2.2: deflate with a window of 32 KiB, and the check of the two header bytes.
bool isZlib(const uint8_t *bytes) { return bytes[0] == 0x78 && (0x7800 | bytes[1]) % 31 == 0; }

// `read(offset, size, bytes)` returns a view of part of the file, which has `size` bytes.
template <typename Read>
Status eachRecord(uint64_t size, const std::string &where, Read &&read, const VisitRecord &visit) {
  std::span<const uint8_t> bytes;
  uint64_t number = 0;
  for (uint64_t at = 0; at < size; ++number) {
    std::string name = where + ", record " + std::to_string(number) + " at byte " + std::to_string(at);
    if (size - at < headSize)
      return {MT_CORRUPT, name + ": expected a head of 12 bytes, found " + std::to_string(size - at)};
    if (Status s = read(at, headSize, bytes); !s.ok())
      return s;
    if (!isHead(bytes.data()))
      return number == 0 && isZlib(bytes.data())
                 ? Status(MT_INVALID, where + ": expected records that are not compressed, or by GZIP, found ZLIB")
                 : Status(MT_CORRUPT, name + ": the checksum of its length is wrong");
    uint64_t length = load<uint64_t>(bytes.data());
    at += headSize;
    if (length > maxRecord || size - at < tailSize || length > size - at - tailSize)
      return {MT_CORRUPT, name + ": expected " + std::to_string(length) + " bytes and a checksum, found " +
                              std::to_string(size - at) + " bytes"};
    if (Status s = read(at, length + tailSize, bytes); !s.ok())
      return s;
    if (maskedCrc32c(bytes.data(), length) != load<uint32_t>(bytes.data() + length))
      return {MT_CORRUPT, name + ": the checksum of its " + std::to_string(length) + " bytes is wrong"};
    if (Status s = visit(number, at, bytes.first(length)); !s.ok())
      return std::move(s).in(name + ": ");
    at += length + tailSize;
  }
  return {};
}

struct File {
  int descriptor = -1;
  ~File() {
    if (descriptor >= 0)
      close(descriptor);
  }
  Status read(const std::string &path, uint64_t offset, uint64_t size, uint8_t *out) const {
    for (uint64_t got = 0; got < size;) {
      ssize_t count = pread(descriptor, out + got, size - got, static_cast<off_t>(offset + got));
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0)
        return ioError("cannot read", path, errno);
      if (count == 0)
        return {MT_IO, "cannot read " + path + ": it has become shorter"};
      got += static_cast<uint64_t>(count);
    }
    return {};
  }
};

} // namespace

Status readRecords(std::span<const uint8_t> file, const std::string &where, const VisitRecord &visit) {
  return eachRecord(
      file.size(), where,
      [&](uint64_t offset, uint64_t size, std::span<const uint8_t> &bytes) {
        bytes = file.subspan(offset, size);
        return Status();
      },
      visit);
}

Status readRecords(const std::string &path, std::shared_ptr<const std::vector<uint8_t>> &inflated,
                   const VisitRecord &visit) {
  inflated = nullptr;
  File file;
  file.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor < 0)
    return ioError("cannot open", path, errno);
  struct stat facts;
  if (fstat(file.descriptor, &facts) != 0 || !S_ISREG(facts.st_mode))
    return {MT_IO, "cannot read " + path + ": it is not a regular file"};
  auto size = static_cast<uint64_t>(facts.st_size);
  std::vector<uint8_t> room(1 << 16);
  if (size >= headSize) {
    if (Status s = file.read(path, 0, headSize, room.data()); !s.ok())
      return s;
    if (room[0] == 0x1f && room[1] == 0x8b && !isHead(room.data())) {
      std::vector<uint8_t> bytes;
      std::string opened;
      if (Status s = readData(path, bytes, opened); !s.ok())
        return s;
      auto whole = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
      inflated = whole;
      return readRecords(*whole, path, visit);
    }
  }
  return eachRecord(
      size, path,
      [&](uint64_t offset, uint64_t length, std::span<const uint8_t> &bytes) {
        if (room.size() < length)
          room.resize(length);
        bytes = {room.data(), length};
        return file.read(path, offset, length, room.data());
      },
      visit);
}

namespace {

// Iterates over the fields of a protocol buffer message.
class Wire {
public:
  explicit Wire(std::span<const uint8_t> message) : rest_(message) {}
  bool more() const { return good_ && !rest_.empty(); }
  bool good() const { return good_; }

  // Reads the number and the wire type of the next field.
  void key(uint64_t &field, uint32_t &type) {
    uint64_t value = varint();
    field = value >> 3;
    type = value & 7;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (rest_.empty())
        break;
      uint8_t byte = rest_[0];
      rest_ = rest_.subspan(1);
      value |= shift < 64 ? uint64_t(byte & 0x7f) << shift : 0;
      if (byte < 0x80)
        return value;
    }
    good_ = false;
    return 0;
  }
  std::span<const uint8_t> bytes(uint64_t size) {
    if (size > rest_.size()) {
      good_ = false;
      return {};
    }
    std::span<const uint8_t> result = rest_.first(size);
    rest_ = rest_.subspan(size);
    return result;
  }
  std::span<const uint8_t> message() { return bytes(varint()); }
  void skip(uint32_t type) {
    if (type == 0)
      varint();
    else if (type == 1)
      bytes(8);
    else if (type == 2)
      message();
    else if (type == 5)
      bytes(4);
    else
      good_ = false;
  }

private:
  std::span<const uint8_t> rest_;
  bool good_ = true;
};

// Parses BytesList, FloatList or Int64List: field 1, with packed or single numbers.
bool parseList(std::span<const uint8_t> message, Feature &feature) {
  Wire wire(message);
  uint64_t field = 0;
  uint32_t type = 0;
  auto floats = [&](std::span<const uint8_t> packed) {
    for (size_t i = 0; i + 4 <= packed.size(); i += 4)
      feature.floats.push_back(load<float>(packed.data() + i));
    return packed.size() % 4 == 0;
  };
  while (wire.more()) {
    wire.key(field, type);
    if (field != 1) {
      wire.skip(type);
    } else if (feature.kind == Feature::Kind::Bytes && type == 2) {
      feature.bytes.push_back(wire.message());
    } else if (feature.kind == Feature::Kind::Floats && (type == 2 || type == 5)) {
      if (!floats(type == 2 ? wire.message() : wire.bytes(4)))
        return false;
    } else if (feature.kind == Feature::Kind::Ints && type == 0) {
      feature.ints.push_back(static_cast<int64_t>(wire.varint()));
    } else if (feature.kind == Feature::Kind::Ints && type == 2) {
      Wire packed(wire.message());
      while (packed.more())
        feature.ints.push_back(static_cast<int64_t>(packed.varint()));
      if (!packed.good())
        return false;
    } else {
      return false;
    }
  }
  return wire.good();
}

// Parses Feature: one of bytes_list = 1, float_list = 2, int64_list = 3.
bool parseFeature(std::span<const uint8_t> message, Feature &feature) {
  Wire wire(message);
  uint64_t field = 0;
  uint32_t type = 0;
  while (wire.more()) {
    wire.key(field, type);
    if (field < 1 || field > 3 || type != 2) {
      wire.skip(type);
      continue;
    }
    std::string_view name = feature.name;
    feature = {};
    feature.name = name;
    feature.kind = static_cast<Feature::Kind>(field);
    if (!parseList(wire.message(), feature))
      return false;
  }
  return wire.good();
}

// Parses an entry of the map: key = 1, value = 2.
bool parseEntry(std::span<const uint8_t> message, std::vector<Feature> &features) {
  Wire wire(message);
  uint64_t field = 0;
  uint32_t type = 0;
  std::span<const uint8_t> key, value;
  while (wire.more()) {
    wire.key(field, type);
    if (field == 1 && type == 2)
      key = wire.message();
    else if (field == 2 && type == 2)
      value = wire.message();
    else
      wire.skip(type);
  }
  Feature feature;
  feature.name = {reinterpret_cast<const char *>(key.data()), key.size()};
  if (!wire.good() || !parseFeature(value, feature))
    return false;
  auto same = std::find_if(features.begin(), features.end(), [&](const Feature &f) { return f.name == feature.name; });
  if (same != features.end())
    *same = std::move(feature);
  else
    features.push_back(std::move(feature));
  return true;
}

} // namespace

// Parses Example: features = 1; and Features: the map = 1.
Status parseExample(std::span<const uint8_t> message, std::vector<Feature> &features) {
  features.clear();
  Wire wire(message);
  uint64_t field = 0;
  uint32_t type = 0;
  bool good = true;
  while (good && wire.more()) {
    wire.key(field, type);
    if (field != 1 || type != 2) {
      wire.skip(type);
      continue;
    }
    Wire entries(wire.message());
    while (good && entries.more()) {
      entries.key(field, type);
      if (field == 1 && type == 2)
        good = parseEntry(entries.message(), features);
      else
        entries.skip(type);
    }
    good = good && entries.good();
  }
  if (!good || !wire.good())
    return {MT_CORRUPT, "expected a tf.train.Example, found " + std::to_string(message.size()) + " other bytes"};
  return {};
}

} // namespace mtrun
