// SPDX-License-Identifier: Apache-2.0
//
// The reader of .safetensors headers: a parser of just the JSON that the format allows, then the format's own rules.
#include "runtime/support/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace mtrun {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000; // bytes, the format's limit
constexpr size_t kMaxRank = 64;

// One entry of the header before its rules are checked.
struct Entry {
  SafeTensor tensor;
  std::string dtype;
  uint64_t begin = 0, end = 0;
  bool hasDtype = false, hasShape = false, hasOffsets = false;
};

// Recursive descent over {"name": {"dtype": "...", "shape": [...], "data_offsets": [b, e]}, "__metadata__": {"k":
// "v"}}.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  // False: error() says what was expected at which byte of the header.
  bool parse(std::vector<Entry> &entries, Metadata &metadata);
  const std::string &error() const { return error_; }

private:
  bool entry(Entry &entry);
  bool field(const std::string &key, Entry &entry);
  bool metadata(Metadata &metadata);
  bool string(std::string &out);
  bool escape(std::string &out);
  bool hex4(uint32_t &code);
  bool number(uint64_t &out);
  bool numbers(std::vector<uint64_t> &out, size_t limit);
  bool token(char c);
  bool peek(char c);
  // Members of an object: `member` parses one "key": value.
  template <typename Member> bool object(Member &&member);
  void space();
  bool fail(const std::string &expected);

  std::string_view text_;
  size_t at_ = 0;
  std::string error_;
};

} // namespace

bool HeaderParser::fail(const std::string &expected) {
  if (error_.empty())
    error_ = "header byte " + std::to_string(at_) + ": expected " + expected;
  return false;
}

void HeaderParser::space() {
  while (at_ < text_.size() && strchr(" \t\r\n", text_[at_]) && text_[at_])
    ++at_;
}

bool HeaderParser::peek(char c) {
  space();
  return at_ < text_.size() && text_[at_] == c;
}

bool HeaderParser::token(char c) {
  if (!peek(c))
    return fail(std::string("'") + c + "'");
  ++at_;
  return true;
}

template <typename Member> bool HeaderParser::object(Member &&member) {
  if (!token('{'))
    return false;
  if (peek('}'))
    return token('}');
  do {
    std::string key;
    space();
    if (!string(key) || !token(':') || !member(key))
      return false;
  } while (peek(',') && token(','));
  return token('}');
}

bool HeaderParser::hex4(uint32_t &code) {
  code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    char c = at_ < text_.size() ? text_[at_] : 0;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0)
      return fail("four hexadecimal digits");
    code = code << 4 | static_cast<uint32_t>(digit);
  }
  return true;
}

bool HeaderParser::escape(std::string &out) {
  static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  char c = at_ < text_.size() ? text_[at_++] : 0;
  if (size_t i = kFrom.find(c); c && i != std::string_view::npos) {
    out += kTo[i];
    return true;
  }
  uint32_t code, low;
  if (c != 'u' || !hex4(code))
    return fail("an escape sequence");
  if (code >= 0xD800 && code < 0xDC00) { // first half of a surrogate pair
    if (text_.substr(at_, 2) != "\\u")
      return fail("the second half of a surrogate pair");
    at_ += 2;
    if (!hex4(low) || low < 0xDC00 || low > 0xDFFF)
      return fail("the second half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  } else if (code < 0x10000) {
    out += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  } else {
    out += {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3F)),
            static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
  }
  return true;
}

bool HeaderParser::string(std::string &out) {
  if (!token('"'))
    return false;
  while (at_ < text_.size()) {
    char c = text_[at_++];
    if (c == '"')
      return true;
    if (static_cast<unsigned char>(c) < 0x20)
      return fail("a string without control characters");
    if (c != '\\')
      out += c;
    else if (!escape(out))
      return false;
  }
  return fail("the end of a string");
}

bool HeaderParser::number(uint64_t &out) {
  space();
  size_t start = at_;
  out = 0;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
    if (__builtin_mul_overflow(out, 10, &out) || __builtin_add_overflow(out, uint64_t(text_[at_] - '0'), &out))
      return fail("a number below 2^64");
  if (at_ == start || (text_[start] == '0' && at_ - start > 1))
    return fail("a whole number");
  return true;
}

bool HeaderParser::numbers(std::vector<uint64_t> &out, size_t limit) {
  if (!token('['))
    return false;
  if (peek(']'))
    return token(']');
  do {
    if (out.size() == limit)
      return fail("at most " + std::to_string(limit) + " numbers");
    out.emplace_back();
    if (!number(out.back()))
      return false;
  } while (peek(',') && token(','));
  return token(']');
}

bool HeaderParser::field(const std::string &key, Entry &entry) {
  std::vector<uint64_t> list;
  if (key == "dtype" && !entry.hasDtype)
    return entry.hasDtype = true, space(), string(entry.dtype);
  if (key == "shape" && !entry.hasShape) {
    entry.hasShape = true;
    if (!numbers(list, kMaxRank))
      return false;
    for (uint64_t dim : list) {
      if (dim > INT64_MAX)
        return fail("dimensions below 2^63");
      entry.tensor.shape.push_back(static_cast<int64_t>(dim));
    }
    return true;
  }
  if (key == "data_offsets" && !entry.hasOffsets) {
    entry.hasOffsets = true;
    if (!numbers(list, 2))
      return false;
    if (list.size() != 2)
      return fail("two data_offsets");
    entry.begin = list[0];
    entry.end = list[1];
    return true;
  }
  return fail("dtype, shape and data_offsets, once each, found \"" + key + "\"");
}

bool HeaderParser::entry(Entry &entry) {
  if (!object([&](const std::string &key) { return field(key, entry); }))
    return false;
  if (!entry.hasDtype || !entry.hasShape || !entry.hasOffsets)
    return fail("dtype, shape and data_offsets of \"" + entry.tensor.name + "\"");
  return true;
}

bool HeaderParser::metadata(Metadata &metadata) {
  return object([&](const std::string &key) { return space(), string(metadata[key]); });
}

bool HeaderParser::parse(std::vector<Entry> &entries, Metadata &metadata) {
  bool good = object([&](const std::string &key) {
    if (key == "__metadata__")
      return this->metadata(metadata);
    entries.emplace_back();
    entries.back().tensor.name = key;
    return entry(entries.back());
  });
  if (!good)
    return false;
  space();
  return at_ == text_.size() || fail("the end of the header");
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
  return std::nullopt;
}

static Status checkEntry(Entry &entry, uint64_t expectedBegin, std::span<const std::byte> data,
                         const std::string &where) {
  std::string name = where + ": tensor \"" + entry.tensor.name + "\": ";
  std::optional<mt_dtype> dtype = typeOf(entry.dtype);
  if (!dtype)
    return {MT_CORRUPT, name + "expected dtype F32, I32, I64, F64, U8 or BOOL, found \"" + entry.dtype + "\""};
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
  if (length > kMaxHeader || length > file.size() - 8)
    return {MT_CORRUPT, where + ": expected a header of at most " +
                            std::to_string(std::min<uint64_t>(kMaxHeader, file.size() - 8)) +
                            " bytes, found a length of " + std::to_string(length)};
  std::string_view header(reinterpret_cast<const char *>(file.data()) + 8, length);
  if (!header.starts_with('{'))
    return {MT_CORRUPT, where + ": expected a header that starts with '{'"};
  std::vector<Entry> entries;
  HeaderParser parser(header);
  Metadata own;
  if (!parser.parse(entries, metadata ? *metadata : own))
    return {MT_CORRUPT, where + ": " + parser.error()};
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
  bytes.resize(got); // a file that shrank meanwhile is short, and its reader says so
  return status;
}

} // namespace mtrun
