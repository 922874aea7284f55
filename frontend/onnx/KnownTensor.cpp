// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/KnownTensor.h"

#include "llvm/ADT/APFloat.h"

#include <cstring>

using namespace mlir;

namespace mtc::onnx {
namespace {

template <typename T> T read(const char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

double readHalf(const char *bytes, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(semantics, llvm::APInt(16, read<uint16_t>(bytes)));
  bool loses;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return value.convertToDouble();
}

double readNumber(const char *bytes, ElementType type) {
  switch (type) {
  case ElementType::Float:
    return read<float>(bytes);
  case ElementType::Double:
    return read<double>(bytes);
  case ElementType::Float16:
    return readHalf(bytes, llvm::APFloat::IEEEhalf());
  case ElementType::Bfloat16:
    return readHalf(bytes, llvm::APFloat::BFloat());
  case ElementType::Int64:
    return static_cast<double>(read<int64_t>(bytes));
  case ElementType::Uint64:
    return static_cast<double>(read<uint64_t>(bytes));
  case ElementType::Int32:
    return read<int32_t>(bytes);
  case ElementType::Uint32:
    return read<uint32_t>(bytes);
  case ElementType::Int16:
    return read<int16_t>(bytes);
  case ElementType::Uint16:
    return read<uint16_t>(bytes);
  case ElementType::Int8:
    return read<int8_t>(bytes);
  case ElementType::Bool:
    return *bytes != 0;
  default:
    return read<uint8_t>(bytes);
  }
}

} // namespace

Known::Type knownTypeOf(ElementType type) {
  return isFloat(type) ? Known::Type::Float : type == ElementType::Bool ? Known::Type::Boolean : Known::Type::Integer;
}

int widthOf(ElementType type) {
  constexpr int half = 32;
  return fewBits(type)                 ? fewBits(type)
         : type == ElementType::Int32  ? half
         : type == ElementType::Uint32 ? -half
         : type == ElementType::Uint64 ? -2 * half
                                       : 2 * half;
}

Known knownOf(const Tensor &tensor) {
  Known known = Known::zeros(tensor.shape, knownTypeOf(tensor.type));
  known.width = widthOf(tensor.type);
  int64_t bytes = bytesOf(tensor.type);
  for (size_t i = 0; i < known.numbers.size(); ++i)
    known.numbers[i] = readNumber(&tensor.bytes[i * static_cast<size_t>(bytes)], tensor.type);
  known.round();
  return known;
}

} // namespace mtc::onnx
