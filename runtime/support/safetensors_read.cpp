// SPDX-License-Identifier: Apache-2.0
//
// Reads .safetensors headers: parses the subset of JSON that the format allows, then checks the format's rules.
#include "runtime/support/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace mtrun {
namespace {

constexpr uint64_t maxHeader = 100'000'000; // bytes, the format's limit
constexpr size_t maxRank = 64;

// An entry of the header before it is checked.
struct Entry {
  SafeTensor tensor;
  std::string dtype;
  uint64_t begin = 0, end = 0;
  bool hasDtype = false, hasShape = false, hasOffsets = false;
};

// Receives {"name": {"dtype": "...", "shape": [...], "data_offsets": [b, e]}, "__metadata__": {"k": "v"}} from the JSON
// library's SAX parser. An unexpected value ends the parse before anything of it is stored.
class HeaderReader {
public:
  HeaderReader(std::vector<Entry> &entries, Metadata &metadata) : entries_(entries), metadata_(metadata) {}

  const std::string &error() const { return error_; }

  // Callbacks of nlohmann::json::sax_parse; false ends the parse.
  bool null() { return unexpected("null"); }
  bool boolean(bool value) { return unexpected(value ? "true" : "false"); }
  bool number_integer(int64_t value) { return unexpected(std::to_string(value)); } // negative numbers
  bool number_unsigned(uint64_t value);
  bool number_float(double, const std::string &text) { return unexpected(text.substr(0, 40)); }
  bool string(std::string &value);
  bool binary(nlohmann::json::binary_t &) { return unexpected("bytes"); }
  bool start_object(size_t);
  bool key(std::string &key);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool parse_error(size_t position, const std::string &, const nlohmann::json::exception &) {
    error_ = "header byte " + std::to_string(position) + ": expected JSON";
    return false;
  }

private:
  enum class Place { Begin, Header, Tensor, Metadata, Shape, Offsets };

  bool isMetadata() const { return key_ == "__metadata__"; }
  bool unexpected(const std::string &found);
  bool fail(const std::string &expected);

  std::vector<Entry> &entries_;
  Metadata &metadata_;
  Place place_ = Place::Begin;
  std::string key_; // the key of the next value
  std::vector<uint64_t> numbers_;
  bool hasMetadata_ = false;
  std::string error_;
};

} // namespace

bool HeaderReader::fail(const std::string &expected) {
  bool inTensor = place_ == Place::Tensor || place_ == Place::Shape || place_ == Place::Offsets;
  error_ = (inTensor ? "tensor \"" + entries_.back().tensor.name + "\": expected " : "header: expected ") + expected;
  return false;
}

bool HeaderReader::unexpected(const std::string &found) {
  std::string wanted;
  switch (place_) {
  case Place::Begin:
    wanted = "an object";
    break;
  case Place::Header:
    wanted = "an object as \"" + key_ + "\"";
    break;
  case Place::Tensor:
    wanted = (key_ == "dtype" ? "a string as " : "an array as ") + key_;
    break;
  case Place::Metadata:
    wanted = "a string as \"" + key_ + "\" of __metadata__";
    break;
  case Place::Shape:
  case Place::Offsets:
    wanted = "whole numbers below 2^64 in " + key_;
    break;
  }
  return fail(wanted + ", found " + found);
}

bool HeaderReader::number_unsigned(uint64_t value) {
  if (place_ != Place::Shape && place_ != Place::Offsets)
    return unexpected(std::to_string(value));
  size_t limit = place_ == Place::Shape ? maxRank : 2;
  if (numbers_.size() == limit)
    return fail("at most " + std::to_string(limit) + " numbers in " + key_);
  if (place_ == Place::Shape && value > INT64_MAX)
    return fail("dimensions below 2^63, found " + std::to_string(value));
  numbers_.push_back(value);
  return true;
}

bool HeaderReader::string(std::string &value) {
  if (place_ == Place::Metadata) {
    metadata_.emplace(key_, std::move(value));
    return true;
  }
  if (place_ != Place::Tensor || key_ != "dtype")
    return unexpected("a string");
  entries_.back().dtype = std::move(value);
  return true;
}

bool HeaderReader::start_object(size_t) {
  if (place_ == Place::Begin) {
    place_ = Place::Header;
    return true;
  }
  if (place_ != Place::Header)
    return unexpected("an object");
  if (isMetadata()) {
    if (std::exchange(hasMetadata_, true))
      return fail("one __metadata__, found two");
    place_ = Place::Metadata;
    return true;
  }
  entries_.emplace_back();
  entries_.back().tensor.name = key_;
  place_ = Place::Tensor;
  return true;
}

bool HeaderReader::key(std::string &key) {
  key_ = std::move(key);
  if (place_ == Place::Metadata && metadata_.contains(key_))
    return fail("different keys in __metadata__, found a second \"" + key_ + "\"");
  if (place_ != Place::Tensor)
    return true;
  Entry &entry = entries_.back();
  bool *has = key_ == "dtype"          ? &entry.hasDtype
              : key_ == "shape"        ? &entry.hasShape
              : key_ == "data_offsets" ? &entry.hasOffsets
                                       : nullptr;
  if (!has || std::exchange(*has, true))
    return fail("dtype, shape and data_offsets, once each, found \"" + key_ + "\"");
  return true;
}

bool HeaderReader::end_object() {
  if (place_ == Place::Tensor) {
    const Entry &entry = entries_.back();
    if (!entry.hasDtype || !entry.hasShape || !entry.hasOffsets)
      return fail("dtype, shape and data_offsets");
  }
  place_ = Place::Header;
  return true;
}

bool HeaderReader::start_array(size_t) {
  if (place_ != Place::Tensor || key_ == "dtype")
    return unexpected("an array");
  place_ = key_ == "shape" ? Place::Shape : Place::Offsets;
  numbers_.clear();
  return true;
}

bool HeaderReader::end_array() {
  Entry &entry = entries_.back();
  if (place_ == Place::Shape) {
    entry.tensor.shape.assign(numbers_.begin(), numbers_.end());
  } else if (numbers_.size() == 2) {
    entry.begin = numbers_[0];
    entry.end = numbers_[1];
  } else {
    return fail("two data_offsets, found " + std::to_string(numbers_.size()));
  }
  place_ = Place::Tensor;
  return true;
}

// Stores only the tensors' names, shapes and offsets and the metadata: an object inside a tensor's object is refused at
// its first byte.
static Status parseHeader(std::string_view header, const std::string &where, std::vector<Entry> &entries,
                          Metadata &metadata) {
  if (!header.starts_with('{'))
    return {MT_CORRUPT, where + ": expected a header that starts with '{'"};
  // the JSON library takes a zero byte for the end of the text
  if (size_t zero = header.find('\0'); zero != std::string_view::npos)
    return {MT_CORRUPT, where + ": header byte " + std::to_string(zero) + ": expected text, found a zero"};
  HeaderReader reader(entries, metadata);
  if (!nlohmann::json::sax_parse(header, &reader))
    return {MT_CORRUPT, where + ": " + reader.error()};
  return {};
}

static std::optional<mt_dtype> typeOf(const std::string &name) {
  if (name == "F32")
    return MT_F32;
  if (name == "I32")
    return MT_I32;
  if (name == "BOOL")
    return MT_BOOL;
  if (name == "I64")
    return MT_I64;
  if (name == "F64")
    return MT_F64;
  if (name == "U8")
    return MT_U8;
  if (name == "F16")
    return MT_F16;
  if (name == "BF16")
    return MT_BF16;
  return std::nullopt;
}

static Status checkEntry(Entry &entry, uint64_t expectedBegin, std::span<const std::byte> data,
                         const std::string &where) {
  std::string name = where + ": tensor \"" + entry.tensor.name + "\": ";
  std::optional<mt_dtype> dtype = typeOf(entry.dtype);
  if (!dtype)
    return {MT_CORRUPT,
            name + "expected dtype F32, F16, BF16, I32, I64, F64, U8 or BOOL, found \"" + entry.dtype + "\""};
  entry.tensor.dtype = *dtype;
  uint64_t size = mt_dtype_size(*dtype);
  bool overflow = false, empty = false;
  for (int64_t dim : entry.tensor.shape) {
    empty |= dim == 0;
    overflow |= __builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size);
  }
  if (empty)
    size = 0;
  else if (overflow)
    return {MT_CORRUPT, name + "the shape has more than 2^64 bytes"};
  if (entry.begin != expectedBegin)
    return {MT_CORRUPT, name + "expected data from byte " + std::to_string(expectedBegin) + ", found " +
                            std::to_string(entry.begin)};
  if (entry.end < entry.begin || entry.end - entry.begin != size)
    return {MT_CORRUPT, name + "expected " + std::to_string(size) + " bytes for its shape, found data_offsets " +
                            std::to_string(entry.begin) + " to " + std::to_string(entry.end)};
  if (entry.end > data.size())
    return {MT_CORRUPT,
            name + "ends at data byte " + std::to_string(entry.end) + ", the file has " + std::to_string(data.size())};
  entry.tensor.bytes = data.subspan(entry.begin, size);
  return {};
}

static float extended(uint16_t half, bool brain) {
  if (brain)
    return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
  constexpr int exponents = 31, bias = 25; // bias: the exponent of the last bit of a subnormal number is 2^-24
  int exponent = half >> 10 & exponents, fraction = half & 0x3ff;
  float size = exponent == 0           ? std::ldexp(static_cast<float>(fraction), 1 - bias)
               : exponent == exponents ? (fraction ? NAN : INFINITY)
                                       : std::ldexp(static_cast<float>(fraction | 0x400), exponent - bias);
  return half & 0x8000 ? -size : size;
}

void widenHalves(std::vector<SafeTensor> &tensors, std::vector<std::vector<std::byte>> &storage) {
  for (SafeTensor &tensor : tensors) {
    if (tensor.dtype != MT_F16 && tensor.dtype != MT_BF16)
      continue;
    std::vector<std::byte> &wide = storage.emplace_back(2 * tensor.bytes.size());
    for (size_t at = 0; at + 1 < tensor.bytes.size(); at += sizeof(uint16_t)) {
      uint16_t half;
      std::memcpy(&half, &tensor.bytes[at], sizeof half);
      float number = extended(half, tensor.dtype == MT_BF16);
      std::memcpy(&wide[2 * at], &number, sizeof number);
    }
    tensor.dtype = MT_F32;
    tensor.bytes = wide;
  }
}

static Status checkNames(const std::vector<Entry> &entries, const std::string &where) {
  std::vector<std::string_view> names;
  for (const Entry &entry : entries)
    names.push_back(entry.tensor.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return {MT_CORRUPT, where + ": tensor \"" + std::string(*twice) + "\" is there twice"};
  return {};
}

Status parseSafetensors(std::span<const std::byte> file, const std::string &where, std::vector<SafeTensor> &tensors,
                        Metadata *metadata) {
  uint64_t length = 0;
  if (file.size() < 8)
    return {MT_CORRUPT, where + ": expected at least 8 bytes, found " + std::to_string(file.size())};
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<uint8_t>(file[static_cast<size_t>(i)]);
  if (length > maxHeader || length > file.size() - 8)
    return {MT_CORRUPT, where + ": expected a header of at most " +
                            std::to_string(std::min<uint64_t>(maxHeader, file.size() - 8)) +
                            " bytes, found a length of " + std::to_string(length)};
  std::string_view header(reinterpret_cast<const char *>(file.data()) + 8, length);
  std::vector<Entry> entries;
  Metadata own;
  if (Status s = parseHeader(header, where, entries, metadata ? *metadata : own); !s.ok())
    return s;
  if (Status s = checkNames(entries, where); !s.ok())
    return s;
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  std::span<const std::byte> data = file.subspan(8 + length);
  uint64_t end = 0;
  for (Entry &entry : entries) {
    if (Status s = checkEntry(entry, end, data, where); !s.ok())
      return s;
    end = entry.end;
    tensors.push_back(std::move(entry.tensor));
  }
  if (end != data.size())
    return {MT_CORRUPT,
            where + ": expected " + std::to_string(end) + " bytes of data, found " + std::to_string(data.size())};
  return {};
}

Status readWholeFile(const std::string &path, std::vector<std::byte> &bytes) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return ioError("cannot open", path, errno);
  struct stat facts;
  Status status;
  if (fstat(descriptor, &facts) != 0)
    status = ioError("cannot read", path, errno);
  else if (!S_ISREG(facts.st_mode))
    status = {MT_IO, "cannot read " + path + ": it is not a regular file"};
  else
    bytes.resize(static_cast<size_t>(facts.st_size));
  size_t got = 0;
  while (status.ok() && got < bytes.size()) {
    ssize_t count = read(descriptor, bytes.data() + got, bytes.size() - got);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      status = ioError("cannot read", path, errno);
    if (count <= 0)
      break;
    got += static_cast<size_t>(count);
  }
  close(descriptor);
  bytes.resize(got); // a file that became shorter meanwhile: its reader reports the missing bytes
  return status;
}

} // namespace mtrun
