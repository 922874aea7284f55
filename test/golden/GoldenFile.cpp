// SPDX-License-Identifier: Apache-2.0
#include "test/golden/GoldenFile.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace golden {

File readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw std::runtime_error(path + ": cannot be opened");
  File file;
  std::string line;
  while (std::getline(stream, line) && !line.empty()) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "step") {
      Step &step = file.steps.emplace_back();
      words >> step.rows >> step.loss >> step.accuracy;
    } else {
      Tensor &tensor = file.tensors.emplace_back();
      words >> tensor.set >> tensor.name >> tensor.count >> tensor.stride >> tensor.sum >> tensor.magnitude;
    }
    if (!words)
      throw std::runtime_error(path + ": expected a step or tensor line, found '" + line + "'");
  }
  for (Tensor &tensor : file.tensors) {
    tensor.values.resize((tensor.count + tensor.stride - 1) / tensor.stride);
    stream.read(reinterpret_cast<char *>(tensor.values.data()), tensor.values.size() * sizeof(float));
    if (!stream)
      throw std::runtime_error(path + ": expected " + std::to_string(tensor.values.size()) + " elements of " +
                               tensor.name);
  }
  return file;
}

} // namespace golden
