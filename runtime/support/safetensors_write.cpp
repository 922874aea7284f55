// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/atomic_file.h"
#include "runtime/support/json_text.h"
#include "runtime/support/safetensors.h"

#include <algorithm>

namespace mtrun {

static const char *typeName(mt_dtype dtype) {
  switch (dtype) {
  case MT_F32:
    return "F32";
  case MT_I32:
    return "I32";
  case MT_BOOL:
    return "BOOL";
  case MT_I64:
    return "I64";
  case MT_F64:
    return "F64";
  case MT_U8:
    return "U8";
  case MT_F16:
    return "F16";
  case MT_BF16:
    return "BF16";
  }
  return "";
}

uint64_t bytesOf(const SafeTensor &tensor) {
  uint64_t bytes = mt_dtype_size(tensor.dtype);
  for (int64_t extent : tensor.shape)
    bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

std::string safetensorsHeader(std::vector<SafeTensor> &tensors, const Metadata &metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor &a, const SafeTensor &b) {
    size_t sizeA = mt_dtype_size(a.dtype), sizeB = mt_dtype_size(b.dtype);
    return sizeA != sizeB ? sizeA > sizeB : a.name < b.name;
  });
  std::string json = "{";
  for (const auto &[key, value] : metadata)
    json += (json.size() > 1 ? "," : "\"__metadata__\":{") + jsonString(key) + ":" + jsonString(value);
  json += metadata.empty() ? "" : "}";
  uint64_t offset = 0;
  for (const SafeTensor &tensor : tensors) {
    json += (json.size() > 1 ? "," : "") + jsonString(tensor.name) + ":{\"dtype\":\"" + typeName(tensor.dtype) +
            "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      json += (i ? "," : "") + std::to_string(tensor.shape[i]);
    json += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(offset + bytesOf(tensor)) + "]}";
    offset += bytesOf(tensor);
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' '); // aligns the data to 8 bytes
  std::string header;
  for (int i = 0; i < 8; ++i)
    header += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return header + json;
}

Status writeSafetensors(const std::string &path, std::vector<SafeTensor> tensors, const Metadata &metadata) {
  std::string header = safetensorsHeader(tensors, metadata);
  AtomicFile file;
  if (Status s = file.open(path); !s.ok())
    return s;
  if (Status s = file.write(header.data(), header.size()); !s.ok())
    return s;
  for (const SafeTensor &tensor : tensors)
    if (Status s = file.write(tensor.bytes.data(), tensor.bytes.size()); !s.ok())
      return s;
  return file.commit();
}

} // namespace mtrun
