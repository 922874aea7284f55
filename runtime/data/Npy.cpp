// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Npy.h"
#include "runtime/data/SourceKind.h"

#include <charconv>
#include <cstring>
#include <string_view>

namespace mtrun {

static const char *descriptor(mt_dtype dtype) {
  switch (dtype) {
  case MT_F32:
    return "<f4";
  case MT_I32:
    return "<i4";
  case MT_BOOL:
    return "|b1";
  case MT_I64:
    return "<i8";
  case MT_F64:
    return "<f8";
  case MT_U8:
    return "|u1";
  case MT_BF16:
  case MT_F16:
    break; // no tensor of a caller has these types
  }
  return "";
}

std::string npyHeader(mt_dtype dtype, std::span<const int64_t> shape) { return npyHeader(descriptor(dtype), shape); }

std::string npyHeader(const std::string &descriptor, std::span<const int64_t> shape) {
  std::string text = "{'descr': '" + descriptor + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }"; // a tuple of one element needs its comma
  size_t fixed = 6 + 2 + 2, total = (fixed + text.size() + 1 + 63) / 64 * 64;
  text.append(total - fixed - text.size() - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

static std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n'))
    text.remove_suffix(1);
  return text;
}

// Returns the value of a key of the dictionary, up to a comma or brace outside parentheses.
static std::string_view valueOf(std::string_view header, std::string_view key) {
  std::string quoted = "'" + std::string(key) + "':";
  size_t at = header.find(quoted);
  if (at == std::string_view::npos)
    return {};
  std::string_view rest = header.substr(at + quoted.size());
  size_t end = 0;
  for (int depth = 0; end < rest.size(); ++end) {
    depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
    if (depth == 0 && (rest[end] == ',' || rest[end] == '}'))
      break;
  }
  return trimmed(rest.substr(0, end));
}

static bool typeOf(std::string_view descr, Stored &type) {
  static constexpr std::pair<std::string_view, Stored> types[] = {
      {"'|u1'", Stored::U8},  {"'|b1'", Stored::Bool}, {"'|i1'", Stored::I8},
      {"'<u2'", Stored::U16}, {"'<i2'", Stored::I16},  {"'<i4'", Stored::I32},
      {"'<u4'", Stored::U32}, {"'<i8'", Stored::I64},  {"'<u8'", Stored::I64}, // checkUnsigned() has checked the values
      {"'<f2'", Stored::F16}, {"'<f4'", Stored::F32},  {"'<f8'", Stored::F64}};
  for (const auto &[name, stored] : types)
    if (descr == name) {
      type = stored;
      return true;
    }
  return false;
}

// Returns the end of a message about a NumPy type that is not supported.
static std::string otherThan(const std::string &descr) {
  auto of = [&](std::string_view kinds) { // in "'<U4'" the byte order precedes the kind
    return descr.size() > 2 && kinds.find(descr[2]) != std::string_view::npos;
  };
  std::string found = ", found " + descr;
  if (of("USO"))
    return found + ", " + (of("O") ? "Python objects" : "texts") +
           ": save them as numbers, or as a CSV file, whose column of names is read as classes";
  if (of("c"))
    return found + ", complex numbers: save their parts as two arrays";
  if (descr.starts_with("'>"))
    return " in little-endian order" + found + ": save array.astype(array.dtype.newbyteorder('<'))";
  return " of 1, 2, 4 or 8 bytes, such as '<f4' and '|u1'" + found;
}

// Checks that unsigned 64-bit numbers fit into int64_t.
static Status checkUnsigned(std::span<const uint8_t> elements, const std::string &where) {
  for (size_t at = 0; at < elements.size(); at += sizeof(uint64_t)) {
    uint64_t value;
    memcpy(&value, elements.data() + at, sizeof value);
    if (value > INT64_MAX)
      return {MT_INVALID, where + ": expected numbers below 2^63, found " + std::to_string(value)};
  }
  return {};
}

// Parses "(3, 4)", "(3,)" or "()".
static bool shapeOf(std::string_view text, std::vector<uint64_t> &shape) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')')
    return false;
  text = trimmed(text.substr(1, text.size() - 2));
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view number = trimmed(text.substr(0, comma));
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), shape.emplace_back());
    if (error != std::errc() || end != number.data() + number.size())
      return false;
    text = comma == std::string_view::npos ? std::string_view() : trimmed(text.substr(comma + 1));
  }
  return true;
}

Status parseNpy(std::span<const uint8_t> file, std::shared_ptr<const uint8_t> owner, const std::string &where,
                Field &field) {
  auto corrupt = [&](const std::string &text) { return Status(MT_CORRUPT, where + ": " + text); };
  if (file.size() < 12 || std::string_view(reinterpret_cast<const char *>(file.data()), 6) != "\x93NUMPY")
    return corrupt("expected an .npy file, found " + std::to_string(file.size()) + " bytes of something else");
  int version = file[6];
  if (version < 1 || version > 3)
    return corrupt("expected .npy version 1, 2 or 3, found " + std::to_string(version));
  size_t begin = version == 1 ? 10 : 12, length = file[8] | size_t(file[9]) << 8;
  if (version > 1)
    length |= size_t(file[10]) << 16 | size_t(file[11]) << 24;
  if (length > file.size() - begin)
    return corrupt("expected a header of " + std::to_string(length) + " bytes, found " +
                   std::to_string(file.size() - begin));
  std::string_view header(reinterpret_cast<const char *>(file.data()) + begin, length);
  std::string descr(valueOf(header, "descr")), order(valueOf(header, "fortran_order"));
  std::vector<uint64_t> shape;
  if (!typeOf(descr, field.type))
    return {MT_INVALID, where + ": expected numbers" + otherThan(descr)};
  if (order != "False" || !shapeOf(valueOf(header, "shape"), shape))
    return {MT_INVALID, where + ": expected an array in C order, found fortran_order " + order + " and shape " +
                            std::string(valueOf(header, "shape"))};
  if (shape.empty())
    return {MT_INVALID, where + ": expected an axis of samples, found a single number"};
  uint64_t stride = storedSize(field.type), bytes = 0;
  bool overflow = false;
  for (size_t i = 1; i < shape.size(); ++i)
    overflow |= __builtin_mul_overflow(stride, shape[i], &stride);
  overflow |= __builtin_mul_overflow(stride, shape[0], &bytes);
  if (overflow || bytes != file.size() - begin - length)
    return corrupt("expected " + (overflow ? "fewer than 2^64" : std::to_string(bytes)) + " bytes of elements, found " +
                   std::to_string(file.size() - begin - length));
  if (descr == "'<u8'")
    if (Status s = checkUnsigned(file.subspan(begin + length), where); !s.ok())
      return s;
  field.where = where;
  field.shape.assign(shape.begin() + 1, shape.end());
  field.samples = shape[0];
  field.stride = stride;
  field.bytes = {std::move(owner), file.data() + begin + length};
  return {};
}

// Reads a file of inputs and then a file of targets.
static Status openNpy(const DataSpec &spec, Table &table) {
  for (const std::string &path : spec.paths) {
    std::vector<uint8_t> bytes;
    std::string opened;
    if (Status s = readData(path, bytes, opened); !s.ok())
      return s;
    size_t size = bytes.size();
    std::shared_ptr<const uint8_t> owner = share(std::move(bytes));
    Field field;
    if (Status s = parseNpy({owner.get(), size}, owner, opened, field); !s.ok())
      return s;
    field.role = table.fields.empty() ? MTRUN_INPUT : MTRUN_TARGET;
    field.name = table.fields.empty() ? "x" : "y";
    table.fields.push_back(std::move(field));
  }
  return {};
}

extern const SourceKind npySource = {
    .name = "npy",
    .form = "npy:X.npy,Y.npy",
    .help = "an array of inputs and one of targets",
    .keys = "",
    .open = openNpy,
    .paths = 2,
};

} // namespace mtrun
