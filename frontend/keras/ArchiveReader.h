// SPDX-License-Identifier: Apache-2.0
//
// The child's side of reading an archive, and the records that it writes.
#ifndef FRONTEND_KERAS_ARCHIVEREADER_H
#define FRONTEND_KERAS_ARCHIVEREADER_H

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace mtc::keras {

constexpr uint64_t maxConfigBytes = uint64_t{1} << 26; // includes constants of a graph, which are numbers in the JSON
constexpr uint64_t maxWeightBytes = uint64_t{1} << 36;
constexpr uint64_t maxTensors = 1 << 20;
constexpr uint64_t maxTensorName = 4096;
constexpr uint64_t maxTensorRank = 8;

// A record: this header, `name_bytes` of name, `rank` int64 sizes, `bytes` of contents. A stream ends with `End`.
enum class RecordKind : uint32_t { Text = 1, Floats = 2, Integers = 3, Error = 4, End = 5 };
struct RecordHeader {
  RecordKind kind;
  uint32_t name_bytes;
  uint32_t rank;
  uint32_t zero;
  uint64_t bytes;
};

// An invalid archive; the text is the error.
struct ArchiveError : std::runtime_error {
  using runtime_error::runtime_error;
};

// Writes records to a file descriptor.
class RecordWriter {
public:
  explicit RecordWriter(int descriptor) : descriptor(descriptor) {}
  void write(RecordKind kind, const std::string &name, const std::vector<int64_t> &shape, const void *bytes,
             uint64_t size);

private:
  void writeAll(const void *bytes, uint64_t size);
  int descriptor;
};

// Reads the archive and writes its records. Throws ArchiveError.
void readZip(const std::string &path, RecordWriter &writer);
// Reads the data sets of an HDF5 file in memory.
void readWeights(std::vector<uint8_t> file, RecordWriter &writer);

} // namespace mtc::keras

#endif
