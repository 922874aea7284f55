// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Compare.h"

#include "runtime/data/Split.h"
#include "runtime/support/hash_text.h"

#include <algorithm>
#include <vector>

namespace mtrun {
namespace {

constexpr int64_t looksAt = 64;

std::string hashOf(const std::string &text) { return hashText(text.data(), text.size()); }

// Appends the bytes of a sample. Pictures are not decoded.
Status appendSample(const Column &column, int64_t sample, std::string &bytes) {
  if (!column.made()) {
    std::vector<std::byte> row(column.rowBytes); // aligned for any type
    column.gather(&sample, 1, row.data());
    bytes.append(reinterpret_cast<const char *>(row.data()), row.size());
    return {};
  }
  std::vector<uint8_t> room;
  std::span<const uint8_t> file;
  if (Status status = column.field.pictures->load(static_cast<uint64_t>(sample), room, file); !status.ok())
    return status;
  bytes.append(file.begin(), file.end());
  return {};
}

// Returns the names of all files and classes as one text.
std::string namesOf(const mtrun_dataset &data) {
  std::string names;
  for (const std::string &name : data.classNames)
    names += name + "\n";
  for (const Column &column : data.columns)
    for (int64_t i = 0; column.made() && i < data.size; ++i)
      names += column.field.pictures->nameOf(static_cast<uint64_t>(data.sample(i))) + "\n";
  return names;
}

} // namespace

Status appendDataLines(const mtrun_dataset &data, const std::string &what, std::string &lines) {
  lines += "\nsamples of " + what + ": " + (data.size < 0 ? "unknown" : std::to_string(data.size));
  lines += "\nchoice of samples of " + what + ": " + std::to_string(choiceHash(data));
  lines += "\nnames of " + what + ": " + hashOf(namesOf(data));
  lines += "\noptions of " + what + ": " + data.changes;
  for (const Column &column : data.columns)
    lines += "\nfield " + column.name + " of " + what + ": " + (column.made() ? "pictures" : "") +
             (column.made() ? "" : std::to_string(column.field.stride) + " bytes per sample");
  int64_t count = data.source ? 0 : std::min(looksAt, data.size);
  for (int64_t i = 0; i < count; ++i) {
    int64_t index =
        count == 1 ? 0 : (data.size - 1) / (count - 1) * i + (data.size - 1) % (count - 1) * i / (count - 1);
    std::string bytes;
    for (const Column &column : data.columns)
      if (Status status = appendSample(column, data.sample(index), bytes); !status.ok())
        return status;
    lines += "\nsample " + std::to_string(index) + " of " + what + ": " + hashOf(bytes);
  }
  return {};
}

} // namespace mtrun
