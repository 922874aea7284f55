// SPDX-License-Identifier: Apache-2.0
//
// ONNX' own schema parses the file; what it has is checked and copied here, and nothing else sees the schema.
#include "frontend/onnx/File.h"
#include "frontend/onnx/ExternalData.h"

#include "onnx/onnx.pb.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <climits>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

namespace mtc::onnx {
namespace {

constexpr int maxNodes = 200000, maxTensors = 200000, maxPorts = 10000, maxRank = 16, maxMembers = 100000;
constexpr size_t maxName = 4096;
constexpr int64_t maxElements = int64_t{1} << 40, maxDimension = int64_t{1} << 40;
constexpr int64_t oldestOpset = 13, newestOpset = 21;

struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void limit(int count, int most, const char *what) {
  if (count > most)
    throw Problem("expected at most " + std::to_string(most) + " " + what + ", found " + std::to_string(count));
}

// UTF-8 (Unicode's table 3-7) without control characters.
bool isText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f)
      return false;
    size_t length = byte < 0x80                   ? 1
                    : byte >= 0xc2 && byte < 0xe0 ? 2
                    : byte >= 0xe0 && byte < 0xf0 ? 3
                    : byte >= 0xf0 && byte < 0xf5 ? 4
                                                  : 0;
    if (length == 0 || i + length > text.size())
      return false;
    for (size_t k = 1; k < length; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      bool edge = k == 1 && ((byte == 0xe0 && next < 0xa0) || (byte == 0xed && next > 0x9f) ||
                             (byte == 0xf0 && next < 0x90) || (byte == 0xf4 && next > 0x8f));
      if (next < 0x80 || next > 0xbf || edge)
        return false;
    }
    i += length;
  }
  return true;
}

std::string nameFrom(const std::string &name, const char *what) {
  if (name.size() > maxName)
    throw Problem(std::string("expected names of at most 4096 bytes, found one of ") + std::to_string(name.size()) +
                  " for " + what);
  if (!isText(name))
    throw Problem(std::string("expected names in UTF-8 without control characters, found another for ") + what);
  return name;
}

int64_t bytesFor(const Tensor &tensor) {
  int64_t bytes = bytesOf(tensor.type);
  if (bytes == 0)
    throw Problem("tensor '" + tensor.name + "': expected numbers, found elements of " + nameOf(tensor.type));
  if (tensor.shape.size() > static_cast<size_t>(maxRank))
    throw Problem("tensor '" + tensor.name + "': expected at most 16 axes, found " +
                  std::to_string(tensor.shape.size()));
  for (int64_t size : tensor.shape) {
    if (size < 0 || size > maxDimension)
      throw Problem("tensor '" + tensor.name + "': expected sizes from 0 to 2^40, found " + std::to_string(size));
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > maxElements)
      throw Problem("tensor '" + tensor.name + "': expected at most 2^40 bytes, found more");
  }
  return bytes;
}

// Elements of a list of the schema's own numbers, each as one of `To`.
template <typename To, typename List> std::string packed(const List &list) {
  std::string bytes(static_cast<size_t>(list.size()) * sizeof(To), '\0');
  for (int i = 0; i < list.size(); ++i) {
    auto value = static_cast<To>(list.Get(i));
    std::memcpy(&bytes[static_cast<size_t>(i) * sizeof(To)], &value, sizeof value);
  }
  return bytes;
}

std::string typedBytes(const ::onnx::TensorProto &proto, ElementType type) {
  switch (type) {
  case ElementType::Float:
    return packed<float>(proto.float_data());
  case ElementType::Double:
    return packed<double>(proto.double_data());
  case ElementType::Int64:
    return packed<int64_t>(proto.int64_data());
  case ElementType::Uint64:
    return packed<uint64_t>(proto.uint64_data());
  case ElementType::Uint32:
    return packed<uint32_t>(proto.uint64_data());
  case ElementType::Int32:
    return packed<int32_t>(proto.int32_data());
  case ElementType::Int16:
  case ElementType::Uint16:
  case ElementType::Float16:
  case ElementType::Bfloat16:
    return packed<uint16_t>(proto.int32_data());
  default:
    return packed<uint8_t>(proto.int32_data());
  }
}

class Translator {
public:
  explicit Translator(const std::string &folder) : external(folder) {}

  void translate(::onnx::ModelProto &proto, Model &model) {
    if (!proto.has_graph())
      throw Problem("expected a graph, found none");
    for (const auto &opset : proto.opset_import())
      if (opset.domain().empty() || opset.domain() == "ai.onnx")
        model.opset = opset.version();
    if (model.opset < oldestOpset || model.opset > newestOpset)
      throw Problem("expected an opset from 13 to 21, found " + std::to_string(model.opset) +
                    ": export the model with opset_version=17");
    ::onnx::GraphProto &graph = *proto.mutable_graph();
    limit(graph.node_size(), maxNodes, "nodes");
    limit(graph.initializer_size(), maxTensors, "initializers");
    limit(graph.input_size(), maxPorts, "inputs");
    limit(graph.output_size(), maxPorts, "outputs");
    if (graph.sparse_initializer_size())
      throw Problem("expected dense initializers, found sparse ones");
    model.name = nameFrom(graph.name(), "the graph");
    for (auto &tensor : *graph.mutable_initializer())
      model.initializers.push_back(translate(tensor));
    for (const auto &port : graph.input())
      model.inputs.push_back(translate(port));
    for (const auto &port : graph.output())
      model.outputs.push_back(translate(port));
    for (auto &node : *graph.mutable_node())
      model.nodes.push_back(translate(node));
  }

private:
  Tensor translate(::onnx::TensorProto &proto) {
    Tensor tensor;
    tensor.name = nameFrom(proto.name(), "a tensor");
    tensor.type = static_cast<ElementType>(proto.data_type());
    tensor.shape.assign(proto.dims().begin(), proto.dims().end());
    int64_t bytes = bytesFor(tensor);
    if (proto.has_segment())
      throw Problem("tensor '" + tensor.name + "': expected a whole tensor, found a segment");
    if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
      std::map<std::string, std::string> keys;
      for (const auto &entry : proto.external_data())
        keys[entry.key()] = entry.value();
      if (std::string problem = external.read(keys, bytes, tensor.bytes); !problem.empty())
        throw Problem("tensor '" + tensor.name + "': " + problem);
    } else if (proto.has_raw_data()) {
      tensor.bytes = std::move(*proto.mutable_raw_data());
    } else {
      tensor.bytes = typedBytes(proto, tensor.type);
    }
    if (static_cast<int64_t>(tensor.bytes.size()) != bytes)
      throw Problem("tensor '" + tensor.name + "': expected " + std::to_string(bytes) + " bytes, found " +
                    std::to_string(tensor.bytes.size()));
    return tensor;
  }

  static Port translate(const ::onnx::ValueInfoProto &proto) {
    Port port;
    port.name = nameFrom(proto.name(), "an input or an output");
    const auto &type = proto.type().tensor_type();
    port.type = static_cast<ElementType>(type.elem_type());
    port.hasShape = type.has_shape();
    limit(type.shape().dim_size(), maxRank, "axes");
    for (const auto &size : type.shape().dim()) {
      Dimension dimension;
      if (size.has_dim_value())
        dimension.size = size.dim_value();
      dimension.symbol = nameFrom(size.dim_param(), "an axis");
      if (size.has_dim_value() && (dimension.size < 0 || dimension.size > maxDimension))
        throw Problem("'" + port.name + "': expected sizes from 0 to 2^40, found " + std::to_string(dimension.size));
      port.shape.push_back(dimension);
    }
    return port;
  }

  Node translate(::onnx::NodeProto &proto) {
    Node node;
    node.name = nameFrom(proto.name(), "a node");
    node.op = nameFrom(proto.op_type(), "an op");
    node.domain = proto.domain() == "ai.onnx" ? "" : nameFrom(proto.domain(), "a domain");
    limit(proto.input_size(), maxMembers, "inputs of a node");
    limit(proto.output_size(), maxMembers, "outputs of a node");
    limit(proto.attribute_size(), maxMembers, "attributes of a node");
    for (const std::string &name : proto.input())
      node.inputs.push_back(nameFrom(name, "an input of a node"));
    for (const std::string &name : proto.output())
      node.outputs.push_back(nameFrom(name, "an output of a node"));
    for (auto &attribute : *proto.mutable_attribute()) {
      std::string name = nameFrom(attribute.name(), "an attribute");
      if (!node.attributes.emplace(name, translate(attribute)).second)
        throw Problem("node '" + node.name + "': expected one attribute " + name + ", found two");
    }
    return node;
  }

  Attribute translate(::onnx::AttributeProto &proto) {
    using Kind = Attribute::Kind;
    Attribute attribute;
    switch (proto.type()) {
    case ::onnx::AttributeProto::FLOAT:
      attribute.kind = Kind::Float;
      break;
    case ::onnx::AttributeProto::INT:
      attribute.kind = Kind::Integer;
      break;
    case ::onnx::AttributeProto::STRING:
      attribute.kind = Kind::Text;
      break;
    case ::onnx::AttributeProto::FLOATS:
      attribute.kind = Kind::Floats;
      break;
    case ::onnx::AttributeProto::INTS:
      attribute.kind = Kind::Integers;
      break;
    case ::onnx::AttributeProto::STRINGS:
      attribute.kind = Kind::Texts;
      break;
    case ::onnx::AttributeProto::TENSOR:
      attribute.kind = Kind::Tensor;
      attribute.tensor = translate(*proto.mutable_t());
      break;
    default:
      break;
    }
    attribute.number = proto.f();
    attribute.integer = proto.i();
    attribute.text = proto.s();
    attribute.numbers.assign(proto.floats().begin(), proto.floats().end());
    attribute.integers.assign(proto.ints().begin(), proto.ints().end());
    attribute.texts.assign(proto.strings().begin(), proto.strings().end());
    return attribute;
  }

  ExternalData external;
};

std::string parse(google::protobuf::io::ZeroCopyInputStream &stream, const std::string &folder, Model &model) {
  ::onnx::ModelProto proto;
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT_MAX);
  if (!proto.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return "expected an ONNX model, found a file that is damaged, or larger than 2 GiB";
  try {
    Translator(folder).translate(proto, model);
  } catch (const Problem &problem) {
    return problem.what();
  }
  return {};
}

} // namespace

std::string parseModel(std::string_view bytes, const std::string &folder, Model &model) {
  if (bytes.size() > INT_MAX)
    return "expected an ONNX model of at most 2 GiB, found " + std::to_string(bytes.size()) + " bytes";
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return parse(stream, folder, model);
}

std::string readModel(const std::string &path, Model &model) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return std::string("cannot open the file: ") + std::strerror(errno);
  google::protobuf::io::FileInputStream stream(descriptor);
  stream.SetCloseOnDelete(true);
  size_t slash = path.rfind('/');
  return parse(stream, slash == std::string::npos ? "." : path.substr(0, slash + 1), model);
}

} // namespace mtc::onnx
