// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a TFRecord file, and as a tf.train.Example: the readers say no, or every view lies within the bytes.
#include "runtime/data/Records.h"
#include "test/fuzz/harness.h"

static void look(std::span<const uint8_t> bytes) {
  std::vector<mtrun::Feature> features;
  mtrun::Status status = mtrun::parseExample(bytes, features);
  if (!status.ok() && status.message().empty())
    __builtin_trap();
  for (const mtrun::Feature &feature : features) {
    readAll({reinterpret_cast<const uint8_t *>(feature.name.data()), feature.name.size()});
    for (std::span<const uint8_t> value : feature.bytes)
      readAll(value);
    if (feature.count() > bytes.size())
      __builtin_trap();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size); // with an end that the sanitizer guards
  look(bytes);
  uint64_t end = 0;
  mtrun::Status status =
      mtrun::readRecords(bytes, "file", [&](uint64_t, uint64_t offset, std::span<const uint8_t> record) {
        if (offset < end || offset + record.size() > bytes.size())
          __builtin_trap();
        end = offset + record.size();
        look(record);
        return mtrun::Status();
      });
  if (!status.ok() && status.message().empty())
    __builtin_trap();
  return 0;
}
