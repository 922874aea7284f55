// SPDX-License-Identifier: Apache-2.0
//
// The dependence graph of a program of kernels.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace mtc {

// A kernel, or all all-reduces of a bucket.
struct Node {
  std::vector<mlir::Operation *> ops;
  llvm::SmallSetVector<unsigned, 8> before; // nodes that must be complete before this node starts
  bool share = false;                       // the kernel writes memory that devices share
  unsigned level = 0;                       // one more than the highest level of the nodes in `before`
  bool concurrent = false;                  // the kernel runs concurrently with the all-reduce of the previous level
  std::optional<unsigned> head = {};        // the node whose tail the kernel is (Tails.cpp)
  bool hasTail = false;
  bool isCollective() const;
  mlir::mt::KernelOp kernel() const { return llvm::dyn_cast<mlir::mt::KernelOp>(ops.front()); }
};

class Graph {
public:
  // Builds nodes and edges. Edges follow values, turns (dialects/mt/Blocks.h) and the order of buckets, and lead from
  // all readers of a variable to its writer. If a variable cannot be written in place, because a reader would have to
  // follow the writer, adds a kernel at the end that copies the new value.
  static mlir::FailureOr<Graph> build(mlir::mt::ProgramOp program);

  std::vector<Node> nodes;
  mlir::Block *body = nullptr;

private:
  void addNodes();
  void addValueEdges();
  void addTurnEdges();
  void addBucketEdges();
  mlir::LogicalResult addVariableEdges();
  mlir::LogicalResult markShared();
  unsigned nodeOf(mlir::Operation *op) const { return nodeOfOp.lookup(op); }
  llvm::StringMap<std::vector<unsigned>> readersOfVariables() const;

  llvm::DenseMap<mlir::Operation *, unsigned> nodeOfOp;
};

// Finds tails of a kind, for GPUs: sums over the batch first, then rows. Returns whether there are new
// tails, for which levels must be assigned.
bool findTails(Graph &graph, mlir::mt::KernelKind kind);
// Makes kernels of single numbers tails too, when the levels are final. Their levels may change.
void findScalarTails(Graph &graph, llvm::ArrayRef<unsigned> order);

} // namespace mtc
