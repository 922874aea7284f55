// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/EventRecords.h"
#include "runtime/support/crc32c.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mtrun_tool {

constexpr int histogramBuckets = 30; // the default of Keras

static std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

static std::string masked(const std::string &bytes) {
  return little(mtrun::maskedCrc32c(bytes.data(), bytes.size()), 4);
}

static std::string record(const std::string &event) {
  std::string length = little(event.size(), 8);
  return length + masked(length) + event + masked(event);
}

// Encodes fields of protocol buffers: a key with number and wire type, then the value.
static std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7)
    text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}
static std::string text(int field, const std::string &bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}
static std::string real(int field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return varint(static_cast<uint64_t>(field) << 3 | 1) + little(bits, 8);
}
static std::string real32(int field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return varint(static_cast<uint64_t>(field) << 3 | 5) + little(bits, 4);
}

std::string versionRecord(double wallTime) { return record(real(1, wallTime) + text(3, "brain.Event:2")); }

std::string scalarRecord(double wallTime, int64_t step, const std::string &tag, float value) {
  std::string summary = text(1, text(1, tag) + real32(2, value));
  return record(real(1, wallTime) + varint(2 << 3) + varint(static_cast<uint64_t>(step)) + text(5, summary));
}

// Makes an event with `wallTime`, `step` and one value of a summary.
static std::string valueRecord(double wallTime, int64_t step, const std::string &value) {
  return record(real(1, wallTime) + varint(2 << 3) + varint(static_cast<uint64_t>(step)) + text(5, text(1, value)));
}

Histogram histogramOf(std::span<const float> values) {
  Histogram h;
  for (float value : values) {
    if (!std::isfinite(value))
      continue;
    h.least = h.count ? std::min<double>(h.least, value) : value;
    h.largest = h.count ? std::max<double>(h.largest, value) : value;
    h.sum += value;
    h.sumOfSquares += static_cast<double>(value) * value;
    ++h.count;
  }
  if (h.count == 0)
    return h;
  int buckets = h.least < h.largest ? histogramBuckets : 1;
  double width = (h.largest - h.least) / buckets;
  for (int i = 1; i <= buckets; ++i)
    h.limits.push_back(i == buckets ? h.largest : h.least + width * i);
  h.counts.resize(static_cast<size_t>(buckets));
  for (float value : values)
    if (std::isfinite(value))
      ++h.counts[width > 0 ? std::min(static_cast<size_t>((value - h.least) / width), h.counts.size() - 1) : 0];
  return h;
}

std::string histogramRecord(double wallTime, int64_t step, const std::string &tag, const Histogram &h) {
  std::string limits, counts;
  for (size_t i = 0; i < h.counts.size(); ++i) {
    uint64_t bits;
    memcpy(&bits, &h.limits[i], sizeof bits);
    limits += little(bits, 8);
    double count = static_cast<double>(h.counts[i]);
    memcpy(&bits, &count, sizeof bits);
    counts += little(bits, 8);
  }
  std::string histogram = real(1, h.least) + real(2, h.largest) + real(3, static_cast<double>(h.count)) +
                          real(4, h.sum) + real(5, h.sumOfSquares) + text(6, limits) + text(7, counts);
  return valueRecord(wallTime, step, text(1, tag) + text(5, histogram));
}

std::string textRecord(double wallTime, const std::string &tag, const std::string &markdown) {
  // The value is a tensor of type 7 (string) without axes; metadata has the plug-in and class 2 (tensor).
  std::string tensor = varint(1 << 3) + varint(7) + text(2, "") + text(8, markdown);
  std::string metadata = text(1, text(1, "text")) + varint(4 << 3) + varint(2);
  return valueRecord(wallTime, 0, text(1, tag) + text(8, tensor) + text(9, metadata));
}

std::string graphRecord(double wallTime, const std::vector<GraphNode> &nodes) {
  std::string graph;
  for (const GraphNode &node : nodes) {
    std::string bytes = text(1, node.name) + text(2, node.op);
    for (const std::string &input : node.inputs)
      bytes += text(3, input);
    graph += text(1, bytes);
  }
  graph += text(4, varint(1 << 3) + varint(22)); // version of the graph format
  return record(real(1, wallTime) + text(4, graph));
}

} // namespace mtrun_tool
