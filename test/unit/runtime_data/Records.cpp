// SPDX-License-Identifier: Apache-2.0
#include "Records.h"
#include "runtime/support/crc32c.h"

#include <zlib.h>

namespace fixtures {

static std::string big(uint64_t value) {
  std::string text;
  for (int i = 3; i >= 0; --i)
    text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

std::string crcOf(const std::string &bytes) {
  return big(crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

std::string png(uint32_t width, uint32_t height, int type, const std::string &pixels) {
  auto chunk = [](const std::string &name, const std::string &data) {
    return big(data.size()) + name + data + crcOf(name + data);
  };
  std::string rows;
  size_t stride = width * (type == 2 ? 3u : 1u);
  for (uint32_t y = 0; y < height; ++y)
    rows += std::string(1, '\0') + pixels.substr(y * stride, stride);
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef *>(packed.data()), &size, reinterpret_cast<const Bytef *>(rows.data()), rows.size());
  packed.resize(size);
  std::string header = big(width) + big(height) + std::string{8, static_cast<char>(type), 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", packed) + chunk("IEND", "");
}

template <typename T> static std::string raw(T value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}

std::string record(const std::string &bytes) {
  std::string length = raw<uint64_t>(bytes.size());
  return length + raw(mtrun::maskedCrc32c(length.data(), 8)) + bytes +
         raw(mtrun::maskedCrc32c(bytes.data(), bytes.size()));
}

static std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7)
    text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

static std::string field(int number, const std::string &bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string example(const std::vector<std::string> &features) {
  std::string all;
  for (const std::string &feature : features)
    all += field(1, feature);
  return field(1, all);
}

static std::string entry(const std::string &name, int kind, const std::string &list) {
  return field(1, name) + field(2, field(kind, list));
}

std::string feature(const std::string &name, const std::vector<int64_t> &values) {
  std::string list;
  for (int64_t value : values)
    list += varint(static_cast<uint64_t>(value));
  return entry(name, 3, field(1, list));
}

std::string feature(const std::string &name, const std::vector<float> &values) {
  std::string list;
  for (float value : values)
    list += raw(value);
  return entry(name, 2, field(1, list));
}

std::string feature(const std::string &name, const std::vector<std::string> &values) {
  std::string list;
  for (const std::string &value : values)
    list += field(1, value);
  return entry(name, 1, list);
}

} // namespace fixtures
