// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a .safetensors file: the reader says no, or gives tensors that lie in the file and have the bytes of
// their shape.
#include "runtime/support/safetensors.h"

using namespace mtrun;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const std::byte> file(reinterpret_cast<const std::byte *>(data), size);
  std::vector<SafeTensor> tensors;
  Status status = parseSafetensors(file, "fuzz", tensors);
  if (!status.ok()) {
    if (status.message().empty())
      __builtin_trap();
    return 0;
  }
  for (const SafeTensor &tensor : tensors) {
    uint64_t bytes = mt_dtype_size(tensor.dtype);
    for (int64_t dim : tensor.shape)
      if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
        __builtin_trap();
    if (bytes != tensor.bytes.size())
      __builtin_trap();
    if (bytes && (tensor.bytes.data() < file.data() || tensor.bytes.data() + bytes > file.data() + size))
      __builtin_trap();
  }
  // What was read can be written, and reads the same.
  std::vector<std::byte> again;
  std::string header = safetensorsHeader(tensors);
  for (char c : header)
    again.push_back(static_cast<std::byte>(c));
  for (const SafeTensor &tensor : tensors)
    again.insert(again.end(), tensor.bytes.begin(), tensor.bytes.end());
  std::vector<SafeTensor> reread;
  if (!parseSafetensors(again, "again", reread).ok() || reread.size() != tensors.size())
    __builtin_trap();
  return 0;
}
