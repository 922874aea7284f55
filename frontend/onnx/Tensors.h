// SPDX-License-Identifier: Apache-2.0
//
// The tensors of an ONNX file: in the message itself or in a file beside it.
#ifndef FRONTEND_ONNX_TENSORS_H
#define FRONTEND_ONNX_TENSORS_H

#include "frontend/onnx/ExternalData.h"
#include "frontend/onnx/File.h"

namespace mtc::onnx {

class TensorReader {
public:
  // `folder` has the files.
  explicit TensorReader(const std::string &folder) : external(folder) {}
  // A TensorProto. Throws what Message.h says.
  Tensor read(std::string_view message);

private:
  ExternalData external;
};

} // namespace mtc::onnx

#endif
