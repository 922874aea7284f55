// SPDX-License-Identifier: Apache-2.0
//
// What the builder of an ONNX op works with: one node. A builder is a small function that reads the node's attributes
// and operands, makes ops, and gives the results. `OpTable.h` has the closed table of them.
#ifndef FRONTEND_ONNX_CALL_H
#define FRONTEND_ONNX_CALL_H

#include "frontend/logical/Loops.h"
#include "frontend/onnx/KnownTensor.h"

#include <memory>
#include <set>

namespace mtc::onnx {

struct ForBatches;

// A value of the graph: known when the model is read, or computed by the model, or a list of such. Of one that is
// computed, `forBatches` is what is known of it when the batch is; there may be nothing else.
struct Operand {
  std::shared_ptr<const Known> known = nullptr;
  logical::Value value = {};
  std::shared_ptr<const std::vector<Operand>> sequence = nullptr;
  std::shared_ptr<const ForBatches> forBatches = nullptr;
  ElementType type = ElementType::None; // in the file, where that is known
  // In the body of a loop that is built: the importer takes it apart before an op reads it.
  std::shared_ptr<const logical::StepNumbers> steps = nullptr;
  bool isThere() const { return known || value || sequence || forBatches || steps; }
  Operand withValue(const logical::Value &made) const { return {nullptr, made, nullptr, nullptr, type}; }
  // As a value of the model; null where it is none.
  logical::Value lift(logical::Ops &ops) const { return known ? known->lift(ops) : value; }
};

class Call {
public:
  using Value = logical::Value;

  Call(logical::Ops &ops, const Node &node, std::vector<Operand> inputs, std::string stream, int64_t fixedBatch,
       int64_t opset)
      : ops(ops), node(node), inputs(std::move(inputs)), stream(std::move(stream)), fixedBatch(fixedBatch),
        opset(opset) {}

  logical::Ops &ops;
  const Node &node;
  std::vector<Operand> inputs;
  const std::string stream; // a name for random numbers of this node alone
  const int64_t fixedBatch; // what the file says in place of the batch, where its size is fixed; 0: it is not
  const int64_t opset;      // the version of ONNX' ops by which the node is meant
  std::vector<Operand> results;

  size_t count() const { return inputs.size(); }
  bool has(size_t index) const { return index < inputs.size() && inputs[index].isThere(); }
  // An operand as a value, whatever it is. Refused where it is missing.
  Value value(size_t index);
  // The same as floats: integers and booleans are cast.
  Value floats(size_t index);
  // What is known of an operand; null: it is computed by the model.
  const Known *known(size_t index) const { return has(index) ? inputs[index].known.get() : nullptr; }
  bool allKnown() const;
  // An operand that must be known: a shape, an axis.
  const Known &expectKnown(size_t index, const char *what) const;
  // One number that the file says.
  double expectNumber(size_t index, const char *what) const;
  // The same, a whole one.
  int64_t expectInteger(size_t index, const char *what) const;
  logical::Shape shape(size_t index) const;
  size_t rank(size_t index) const { return shape(index).size(); }
  // The elements of the first operand's axes from one on, which are not the batch.
  Size elementsFrom(size_t axis) const;
  // An axis of an operand of this rank, counted from the end where negative.
  static size_t axisOf(int64_t axis, size_t rank);
  // Different axes, in rising order.
  static llvm::SmallVector<int64_t> axesOf(llvm::ArrayRef<int64_t> axes, size_t rank);

  // Attributes. One that nobody reads is an error.
  bool hasAttribute(const char *name) const { return node.attributes.count(name) != 0; }
  int64_t integer(const char *name, int64_t otherwise);
  double number(const char *name, double otherwise);
  std::string text(const char *name, const char *otherwise);
  llvm::SmallVector<int64_t> integers(const char *name, llvm::ArrayRef<int64_t> otherwise = {});
  std::vector<std::string> texts(const char *name);
  std::vector<double> numbers(const char *name);
  const Attribute *attribute(const char *name);
  // Integers that are an operand from some opset on, and an attribute before.
  std::optional<llvm::SmallVector<int64_t>> operandOrAttribute(size_t index, const char *name);
  void ignore(const char *name) { read.insert(name); }
  // The first attribute that nobody read; empty: none.
  std::string unread() const;

  void give(const Value &value) { results.push_back({nullptr, value, nullptr}); }
  void give(Known known) { results.push_back({std::make_shared<const Known>(std::move(known)), {}, nullptr}); }

private:
  std::set<std::string> read;
};

} // namespace mtc::onnx

#endif
