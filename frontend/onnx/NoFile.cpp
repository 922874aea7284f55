// SPDX-License-Identifier: Apache-2.0
//
// In place of File.cpp where ONNX' schema or protobuf was not there when mtc was configured.
#include "frontend/onnx/File.h"

namespace mtc::onnx {

std::string parseModel(std::string_view, const std::string &, Model &) {
  return "expected a model of another format, found an ONNX model: this mtc was built without libonnx-dev and "
         "libprotobuf-dev, which read it";
}

std::string readModel(const std::string &, Model &model) { return parseModel({}, {}, model); }

} // namespace mtc::onnx
