// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/Variables.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <cstring>
#include <numeric>

namespace mtc::onnx {
namespace {

float floatAt(const Tensor &tensor, int64_t index) {
  const char *bytes = &tensor.bytes[static_cast<size_t>(index * bytesOf(tensor.type))];
  if (tensor.type == ElementType::Float) {
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  if (tensor.type == ElementType::Double) {
    double value;
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<float>(value);
  }
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  llvm::APFloat value(tensor.type == ElementType::Float16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(),
                      llvm::APInt(16, bits));
  bool loses;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return value.convertToFloat();
}

// Operands that a formula reads and that cannot be learned.
bool isNumberOf(const Use &use) {
  static constexpr std::pair<const char *, size_t> operands[] = {{"Resize", 1},
                                                                 {"Resize", 2},
                                                                 {"Clip", 1},
                                                                 {"Clip", 2},
                                                                 {"Dropout", 1},
                                                                 {"Pad", 2},
                                                                 {"OneHot", 2},
                                                                 {"Pow", 1},
                                                                 {"Range", 0},
                                                                 {"Range", 1},
                                                                 {"Range", 2},
                                                                 {"Upsample", 1},
                                                                 {"NegativeLogLikelihoodLoss", 2},
                                                                 {"SoftmaxCrossEntropyLoss", 2},
                                                                 {"RotaryEmbedding", 1},
                                                                 {"RotaryEmbedding", 2}};
  return llvm::any_of(
      operands, [&](const auto &operand) { return use.first->op == operand.first && use.second == operand.second; });
}

bool isOfLayer(const Use &use) {
  static constexpr const char *layers[] = {"Gemm",
                                           "Conv",
                                           "ConvTranspose",
                                           "BatchNormalization",
                                           "LayerNormalization",
                                           "InstanceNormalization",
                                           "GroupNormalization",
                                           "RMSNormalization",
                                           "LSTM",
                                           "GRU",
                                           "RNN"};
  return use.second > 0 && llvm::any_of(layers, [&](const char *name) { return use.first->op == name; });
}

bool addsOrMultiplies(const Use &use) { return use.first->op == "Add" || use.first->op == "Mul"; }

} // namespace

bool isVariable(const Tensor &tensor, const std::vector<Use> &uses) {
  int64_t count = countOf(tensor.shape);
  if (!isFloat(tensor.type) || count == 0 || llvm::any_of(uses, isNumberOf))
    return false;
  bool path = tensor.name.find('.') != std::string::npos;
  if (count == 1 && !path && llvm::none_of(uses, isOfLayer))
    return false;
  // A number that is infinite, or that a sum with any other would be, is no weight.
  constexpr float largest = 1e30F;
  for (int64_t i = 0; i < count; ++i)
    if (!(std::fabs(floatAt(tensor, i)) < largest))
      return false;
  return !isMask(tensor);
}

bool isMask(const Tensor &tensor) {
  int64_t count = isFloat(tensor.type) ? countOf(tensor.shape) : 0, hidden = 0;
  constexpr float most = -1e4F;
  for (int64_t i = 0; i < count; ++i) {
    float number = floatAt(tensor, i);
    if (!(number == 0 || number <= most))
      return false;
    hidden += number != 0;
  }
  return hidden > 0;
}

bool isStatistics(const std::vector<Use> &uses) {
  constexpr size_t mean = 3;
  return llvm::any_of(uses, [](const Use &use) { return use.first->op == "BatchNormalization" && use.second >= mean; });
}

bool isShared(const Tensor &tensor, const std::vector<Use> &uses) {
  auto isBiasOrScale = [](const Use &use) { return isOfLayer(use) || addsOrMultiplies(use); };
  return tensor.shape.size() == 1 && llvm::count_if(uses, isBiasOrScale) > 1;
}

std::string readersOutsideOfLayers(const Tensor &tensor, const std::vector<Use> &uses) {
  static constexpr const char *products[] = {"MatMul", "Gemm", "Einsum", "Gather", "PRelu"};
  llvm::SmallSetVector<llvm::StringRef, 4> readers;
  for (const Use &use : uses) {
    bool isBiasOrScale = isOfLayer(use) || (tensor.shape.size() == 1 && addsOrMultiplies(use));
    if (isBiasOrScale || llvm::is_contained(products, use.first->op))
      return "";
    readers.insert(use.first->op);
  }
  return llvm::join(readers, ", ");
}

std::vector<int64_t> storedOrder(const Tensor &tensor, const std::vector<Use> &uses) {
  std::vector<int64_t> order(tensor.shape.size());
  std::iota(order.begin(), order.end(), 0);
  bool kernel = llvm::any_of(
      uses, [](const Use &use) { return llvm::StringRef(use.first->op).starts_with("Conv") && use.second == 1; });
  if (kernel && order.size() > 2)
    std::reverse(order.begin(), order.end()), std::reverse(order.begin(), order.end() - 2);
  return order;
}

NamedTensor valuesOf(const Tensor &tensor, const std::vector<int64_t> &order) {
  NamedTensor values;
  values.name = tensor.name;
  size_t rank = order.size();
  std::vector<int64_t> strides(rank, 1), moved(rank), index(rank, 0);
  for (size_t i = rank; i-- > 1;)
    strides[i - 1] = strides[i] * tensor.shape[i];
  for (size_t i = 0; i < rank; ++i) {
    values.shape.push_back(tensor.shape[order[i]]);
    moved[i] = strides[order[i]];
  }
  int64_t count = countOf(tensor.shape), at = 0;
  values.bytes.resize(static_cast<size_t>(count) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    float number = floatAt(tensor, at);
    std::memcpy(&values.bytes[static_cast<size_t>(i) * sizeof(float)], &number, sizeof number);
    for (size_t axis = rank; axis-- > 0;) {
      at += moved[axis];
      if (++index[axis] < values.shape[axis])
        break;
      at -= moved[axis] * values.shape[axis];
      index[axis] = 0;
    }
  }
  return values;
}

} // namespace mtc::onnx
