// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file as plain structures: what the importer reads, without the library that parses it.
#ifndef FRONTEND_ONNX_FILE_H
#define FRONTEND_ONNX_FILE_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mtc::onnx {

// ONNX' numbers of element types.
enum class ElementType : int32_t {
  None = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Bfloat16 = 16
};
std::string nameOf(ElementType type);
// Bits of integers of fewer than 32, below 0 of those without a sign; 0: another type.
int fewBits(ElementType type);
// Bytes of an element; 0 where there are no tensors of the type here.
int64_t bytesOf(ElementType type);
bool isFloat(ElementType type);

struct Tensor {
  std::string name;
  ElementType type = ElementType::None;
  std::vector<int64_t> shape;
  std::string bytes; // row major, little endian: as many as shape and type say
};
// Elements of a shape that was checked.
int64_t countOf(const std::vector<int64_t> &shape);

struct Graph;

struct Attribute {
  enum class Kind { Float, Integer, Text, Tensor, Graph, Floats, Integers, Texts, Other } kind = Kind::Other;
  double number = 0;
  int64_t integer = 0;
  std::string text;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  Tensor tensor = {};
  std::shared_ptr<const Graph> graph = nullptr; // the body of a branch or of a loop
};

struct Node {
  std::string name, op, domain;             // domain: "" of ONNX itself
  std::vector<std::string> inputs, outputs; // "": none
  std::map<std::string, Attribute> attributes;
};

struct Dimension {
  int64_t size = -1; // -1: any
  std::string symbol;
};

struct Port { // an input or an output
  std::string name;
  ElementType type = ElementType::None;
  bool hasShape = false;
  std::vector<Dimension> shape;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<Port> inputs, outputs;
};

struct Model : Graph {
  int64_t opset = 0;                // of ONNX' own ops; 0: there are none
  std::vector<std::string> domains; // of other ops
};

// By how a file begins: a small version, then a text, an opset or the graph.
bool isModel(std::string_view start);

// What is wrong with the file; empty: nothing. Tensors in files beside it are read; they lie in its folder.
std::string readModel(const std::string &path, Model &model);
// The same of the bytes of a file; `folder` has the files beside it.
std::string parseModel(std::string_view bytes, const std::string &folder, Model &model);

} // namespace mtc::onnx

#endif
