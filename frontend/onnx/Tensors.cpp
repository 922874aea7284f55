// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/Tensors.h"
#include "frontend/onnx/Message.h"

#include <optional>

namespace mtc::onnx {

constexpr int64_t maxBytes = int64_t{1} << 40;

// Bytes of all elements.
static int64_t bytesFor(const Tensor &tensor) {
  int64_t bytes = bytesOf(tensor.type);
  if (bytes == 0)
    throw Problem("tensor '" + tensor.name + "': expected numbers, found elements of " + nameOf(tensor.type));
  for (int64_t size : tensor.shape) {
    if (size < 0 || size > maxDimension)
      throw Problem("tensor '" + tensor.name + "': expected sizes from 0 to 2^40, found " + std::to_string(size));
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > maxBytes)
      throw Problem("tensor '" + tensor.name + "': expected at most 2^40 bytes, found more");
  }
  return bytes;
}

template <typename Element> static void append(std::string &bytes, Element value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

// Elements that are integers in the file, each as one of `To`.
template <typename To> static std::string integers(std::string_view message, uint32_t list) {
  std::string bytes;
  forFields(message, [&](Field &field) {
    if (field.tag() == list)
      forIntegers(field, [&](int64_t value) { append(bytes, static_cast<To>(value)); });
    else
      field.skip();
  });
  return bytes;
}

// The elements of a tensor whose file has them as numbers.
static std::string typedBytes(std::string_view message, ElementType type) {
  std::string bytes;
  switch (type) {
  case ElementType::Float:
  case ElementType::Double:
    forFields(message, [&](Field &field) {
      if (type == ElementType::Float && field.tag() == tensor::floatData)
        forFloats(field, [&](float value) { append(bytes, value); });
      else if (type == ElementType::Double && field.tag() == tensor::doubleData)
        forDoubles(field, [&](double value) { append(bytes, value); });
      else
        field.skip();
    });
    return bytes;
  case ElementType::Int64:
    return integers<int64_t>(message, tensor::int64Data);
  case ElementType::Uint64:
    return integers<uint64_t>(message, tensor::uint64Data);
  case ElementType::Uint32:
    return integers<uint32_t>(message, tensor::uint64Data);
  case ElementType::Int32:
    return integers<int32_t>(message, tensor::int32Data);
  case ElementType::Int16:
  case ElementType::Uint16:
  case ElementType::Float16:
  case ElementType::Bfloat16:
    return integers<uint16_t>(message, tensor::int32Data);
  default:
    return integers<uint8_t>(message, tensor::int32Data);
  }
}

namespace {
// What a file says of a tensor without its elements.
struct Header {
  Tensor tensor;
  std::optional<std::string_view> raw;
  bool isExternal = false, isSegment = false;
  size_t axes = 0; // of which no more are in `tensor` than it may have
  std::map<std::string, std::string> file;
};
} // namespace

static std::pair<std::string, std::string> readEntry(std::string_view message) {
  std::pair<std::string, std::string> made;
  forFields(message, [&](Field &field) {
    if (field.tag() == entry::key)
      made.first = bytesOf(field);
    else if (field.tag() == entry::value)
      made.second = bytesOf(field);
    else
      field.skip();
  });
  return made;
}

static Header readHeader(std::string_view message) {
  Header header;
  forFields(message, [&](Field &field) {
    switch (field.tag()) {
    case tensor::name:
      header.tensor.name = nameOf(field, "a tensor");
      break;
    case tensor::dataType:
      header.tensor.type = static_cast<ElementType>(integerOf(field));
      break;
    case tensor::dims:
      forIntegers(field, [&](int64_t size) {
        if (header.axes++ < maxRank)
          header.tensor.shape.push_back(size);
      });
      break;
    case tensor::rawData:
      header.raw = bytesOf(field);
      break;
    case tensor::dataLocation:
      header.isExternal = integerOf(field) == 1 /* EXTERNAL */;
      break;
    case tensor::externalData: {
      auto [key, value] = readEntry(bytesOf(field));
      header.file[key] = value;
      break;
    }
    case tensor::segment:
      header.isSegment = true;
      [[fallthrough]];
    default:
      field.skip();
    }
  });
  if (header.axes > maxRank)
    throw Problem("tensor '" + header.tensor.name + "': expected at most 16 axes, found " +
                  std::to_string(header.axes));
  return header;
}

Tensor TensorReader::read(std::string_view message) {
  Header header = readHeader(message);
  Tensor &tensor = header.tensor;
  int64_t bytes = bytesFor(tensor);
  if (header.isSegment)
    throw Problem("tensor '" + tensor.name + "': expected a whole tensor, found a segment");
  if (header.isExternal) {
    if (std::string problem = external.read(header.file, bytes, tensor.bytes); !problem.empty())
      throw Problem("tensor '" + tensor.name + "': " + problem);
  } else {
    tensor.bytes = header.raw ? std::string(*header.raw) : typedBytes(message, tensor.type);
  }
  if (static_cast<int64_t>(tensor.bytes.size()) != bytes)
    throw Problem("tensor '" + tensor.name + "': expected " + std::to_string(bytes) + " bytes, found " +
                  std::to_string(tensor.bytes.size()));
  return std::move(tensor);
}

} // namespace mtc::onnx
