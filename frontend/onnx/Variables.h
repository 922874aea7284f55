// SPDX-License-Identifier: Apache-2.0
//
// Initializers as variables and as constants. ONNX does not say which of them are trained.
#ifndef FRONTEND_ONNX_VARIABLES_H
#define FRONTEND_ONNX_VARIABLES_H

#include "frontend/NamedTensor.h"
#include "frontend/onnx/File.h"

namespace mtc::onnx {

// A node that reads an initializer, and as which operand.
using Use = std::pair<const Node *, size_t>;

// Whether it is a variable: floats that are not numbers of a formula. Of one element only where it is an operand of a
// layer that has weights, or has a path, as PyTorch names its parameters.
bool isVariable(const Tensor &tensor, const std::vector<Use> &uses);
// Whether it is added to hide some elements of a softmax: floats that are all 0 or at most -1e4, and not all 0. A bias
// has other numbers too.
bool isMask(const Tensor &tensor);
// Whether it is statistics, which no gradient changes.
bool isStatistics(const std::vector<Use> &uses);
// Whether several nodes read a vector, as a bias or a scale: exporters join parameters that start equal.
bool isShared(const Tensor &tensor, const std::vector<Use> &uses);
// What reads a variable that is no weight, bias, scale or table of a layer: "Add, Mul". Empty where it is one.
std::string readersOutsideOfLayers(const Tensor &tensor, const std::vector<Use> &uses);
// For each axis of the variable the axis of the tensor: kernels of convolutions are stored as `mt` reads them.
std::vector<int64_t> storedOrder(const Tensor &tensor, const std::vector<Use> &uses);
// The tensor's elements as floats, its axes in another order.
NamedTensor valuesOf(const Tensor &tensor, const std::vector<int64_t> &order);

} // namespace mtc::onnx

#endif
