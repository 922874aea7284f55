// SPDX-License-Identifier: Apache-2.0
//
// Tensors of an ONNX model that lie in other files. A model from a stranger names these files, so they must lie in the
// model's own folder.
#ifndef FRONTEND_ONNX_EXTERNALDATA_H
#define FRONTEND_ONNX_EXTERNALDATA_H

#include <cstdint>
#include <map>
#include <string>

namespace mtc::onnx {

class ExternalData {
public:
  explicit ExternalData(std::string folder) : folder(std::move(folder)) {}

  // `keys`: location, offset, length. Of `bytes` bytes; what is wrong, or nothing.
  std::string read(const std::map<std::string, std::string> &keys, int64_t bytes, std::string &content);

private:
  std::string folder;
  std::map<std::string, int64_t> bytesRead; // bytes that were read of each file: not more than it has
};

} // namespace mtc::onnx

#endif
