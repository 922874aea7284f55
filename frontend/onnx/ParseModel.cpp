// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file is a message of Protocol Buffers (onnx.proto of github.com/onnx/onnx). What is used of it is checked and
// copied here, field by field; functions and texts for people are skipped.
#include "frontend/onnx/File.h"
#include "frontend/onnx/Message.h"
#include "frontend/onnx/Tensors.h"
#include "llvm/Support/MemoryBuffer.h"

#include <iterator>

namespace mtc::onnx {
namespace {

constexpr int maxDepth = 16; // of graphs in attributes of nodes
constexpr size_t maxNodes = 200000, maxTensors = 200000, maxPorts = 10000, maxMembers = 100000;
// Before 7 operands broadcast by an attribute; after 28 ops may mean something else.
constexpr int64_t oldestOpset = 7, newestOpset = 28;

// The kind of an attribute by the number in AttributeProto.type.
Attribute::Kind kindOf(int64_t type) {
  using Kind = Attribute::Kind;
  constexpr Kind kinds[] = {Kind::Other, Kind::Float,  Kind::Integer,  Kind::Text, Kind::Tensor,
                            Kind::Graph, Kind::Floats, Kind::Integers, Kind::Texts};
  return type >= 0 && type < std::ssize(kinds) ? kinds[type] : Kind::Other;
}

class Reader {
public:
  explicit Reader(const std::string &folder) : tensors(folder) {}

  void read(std::string_view message, Model &model) {
    std::vector<std::string_view> graphs; // the parts of one, in a file that was made by appending
    forFields(message, [&](Field &field) {
      if (field.tag() == model::graph)
        graphs.push_back(bytesOf(field));
      else if (field.tag() == model::opsetImport)
        readOpset(bytesOf(field), model);
      else
        field.skip();
    });
    if (graphs.empty())
      throw Problem("expected a graph, found none");
    if (model.opset == 0 && !model.domains.empty())
      throw Problem("expected ops of ONNX itself, found those of " + model.domains[0] +
                    " alone, which are not supported");
    if (model.opset == 0)
      throw Problem("expected an opset from 7 to 28, found none");
    if (model.opset < oldestOpset || model.opset > newestOpset)
      throw Problem("expected an opset from 7 to 28, found " + std::to_string(model.opset) +
                    ": export the model with opset_version=17");
    for (std::string_view graph : graphs)
      readGraph(graph, model);
  }

private:
  static void readOpset(std::string_view message, Model &model) {
    std::string_view domain;
    int64_t version = 0;
    forFields(message, [&](Field &field) {
      if (field.tag() == opset::domain)
        domain = bytesOf(field);
      else if (field.tag() == opset::version)
        version = integerOf(field);
      else
        field.skip();
    });
    if (domain.empty() || domain == "ai.onnx") {
      model.opset = version;
    } else {
      limit(model.domains.size() + 1, maxPorts, "domains");
      model.domains.emplace_back(domain);
    }
  }

  // The numbers of nodes and tensors are limited for the graph and all graphs in it together.
  void readGraph(std::string_view message, Graph &model) {
    forFields(message, [&](Field &field) {
      switch (field.tag()) {
      case graph::name:
        model.name = nameOf(field, "the graph");
        break;
      case graph::initializer:
        limit(++tensorCount, maxTensors, "initializers");
        model.initializers.push_back(tensors.read(bytesOf(field)));
        break;
      case graph::input:
        limit(model.inputs.size() + 1, maxPorts, "inputs");
        model.inputs.push_back(readPort(bytesOf(field)));
        break;
      case graph::output:
        limit(model.outputs.size() + 1, maxPorts, "outputs");
        model.outputs.push_back(readPort(bytesOf(field)));
        break;
      case graph::node:
        limit(++nodeCount, maxNodes, "nodes");
        model.nodes.push_back(readNode(bytesOf(field)));
        break;
      case graph::sparseInitializer:
        throw Problem("expected dense initializers, found sparse ones");
      default:
        field.skip();
      }
    });
  }

  static Port readPort(std::string_view message) {
    Port port;
    std::string_view kind;
    forFields(message, [&](Field &field) {
      if (field.tag() == port::name)
        port.name = nameOf(field, "an input or an output");
      else if (field.tag() == port::type)
        kind = bytesOf(field);
      else
        field.skip();
    });
    forFields(kind, [&](Field &field) {
      if (field.tag() == type::tensor)
        readType(bytesOf(field), port);
      else
        field.skip();
    });
    return port;
  }

  static void readType(std::string_view message, Port &port) {
    forFields(message, [&](Field &field) {
      if (field.tag() == tensorType::elementType) {
        port.type = static_cast<ElementType>(integerOf(field));
      } else if (field.tag() == tensorType::shape) {
        port.hasShape = true;
        forFields(bytesOf(field), [&](Field &axis) {
          if (axis.tag() != shape::dim)
            return axis.skip();
          limit(port.shape.size() + 1, maxRank, "axes");
          port.shape.push_back(readDimension(bytesOf(axis), port.name));
        });
      } else {
        field.skip();
      }
    });
  }

  static Dimension readDimension(std::string_view message, const std::string &port) {
    Dimension dimension;
    forFields(message, [&](Field &field) {
      if (field.tag() == dim::value) {
        dimension.size = integerOf(field);
        if (dimension.size < 0 || dimension.size > maxDimension)
          throw Problem("'" + port + "': expected sizes from 0 to 2^40, found " + std::to_string(dimension.size));
      } else if (field.tag() == dim::param) {
        dimension.symbol = nameOf(field, "an axis");
      } else {
        field.skip();
      }
    });
    return dimension;
  }

  Node readNode(std::string_view message) {
    Node node;
    std::vector<std::string_view> attributes;
    forFields(message, [&](Field &field) {
      switch (field.tag()) {
      case node::name:
        node.name = nameOf(field, "a node");
        break;
      case node::opType:
        node.op = nameOf(field, "an op");
        break;
      case node::domain:
        node.domain = nameOf(field, "a domain");
        break;
      case node::input:
        limit(node.inputs.size() + 1, maxMembers, "inputs of a node");
        node.inputs.push_back(nameOf(field, "an input of a node"));
        break;
      case node::output:
        limit(node.outputs.size() + 1, maxMembers, "outputs of a node");
        node.outputs.push_back(nameOf(field, "an output of a node"));
        break;
      case node::attribute:
        limit(attributes.size() + 1, maxMembers, "attributes of a node");
        attributes.push_back(bytesOf(field));
        break;
      default:
        field.skip();
      }
    });
    if (node.domain == "ai.onnx")
      node.domain.clear();
    for (std::string_view attribute : attributes) {
      auto [name, value] = readAttribute(attribute);
      if (!node.attributes.try_emplace(name, std::move(value)).second)
        throw Problem("node '" + node.name + "': expected one attribute " + name + ", found two");
    }
    return node;
  }

  std::pair<std::string, Attribute> readAttribute(std::string_view message) {
    std::pair<std::string, Attribute> made;
    Attribute &attribute = made.second;
    std::string_view tensor, graph;
    forFields(message, [&](Field &field) {
      switch (field.tag()) {
      case attribute::name:
        made.first = nameOf(field, "an attribute");
        break;
      case attribute::type:
        attribute.kind = kindOf(integerOf(field));
        break;
      case attribute::f:
        attribute.number = floatOf(field);
        break;
      case attribute::i:
        attribute.integer = integerOf(field);
        break;
      case attribute::s:
        attribute.text = bytesOf(field);
        break;
      case attribute::t:
        tensor = bytesOf(field);
        break;
      case attribute::g:
        graph = bytesOf(field);
        break;
      case attribute::floats:
        forFloats(field, [&](float value) { attribute.numbers.push_back(value); });
        break;
      case attribute::ints:
        forIntegers(field, [&](int64_t value) { attribute.integers.push_back(value); });
        break;
      case attribute::strings:
        attribute.texts.emplace_back(bytesOf(field));
        break;
      default:
        field.skip();
      }
    });
    if (attribute.kind == Attribute::Kind::Tensor)
      attribute.tensor = tensors.read(tensor);
    if (attribute.kind == Attribute::Kind::Graph)
      attribute.graph = readBody(graph);
    return made;
  }

  std::shared_ptr<const Graph> readBody(std::string_view message) {
    if (++depth > maxDepth)
      throw Problem("expected graphs inside of graphs to a depth of " + std::to_string(maxDepth) + ", found more");
    auto body = std::make_shared<Graph>();
    readGraph(message, *body);
    --depth;
    return body;
  }

  TensorReader tensors;
  size_t nodeCount = 0, tensorCount = 0;
  int depth = 0;
};

} // namespace

std::string parseModel(std::string_view bytes, const std::string &folder, Model &model) {
  try {
    Reader(folder).read(bytes, model);
  } catch (const Problem &problem) {
    return problem.what();
  } catch (const protozero::exception &) {
    return "expected an ONNX model, found a file that is damaged";
  }
  return {};
}

std::string readModel(const std::string &path, Model &model) {
  // Read, not mapped: a file that another process cuts meanwhile is damaged, and no fault.
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                          /*IsVolatile=*/true);
  if (!file)
    return "cannot open the file: " + file.getError().message();
  size_t slash = path.rfind('/');
  return parseModel((*file)->getBuffer(), slash == std::string::npos ? "." : path.substr(0, slash + 1), model);
}

} // namespace mtc::onnx
