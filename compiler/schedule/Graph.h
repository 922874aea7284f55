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
  llvm::SmallSetVector<unsigned, 8> before; // nodes that must be done before this one starts
  bool share = false;                       // writes memory that devices share
  unsigned level = 0;                       // 1 + the highest level before it
  bool beside = false;                      // runs concurrently with the all-reduce of the level before
  bool isCollective() const;
  mlir::mt::KernelOp kernel() const { return llvm::dyn_cast<mlir::mt::KernelOp>(ops.front()); }
};

class Graph {
public:
  // Nodes and edges: values, turns (dialects/mt/Blocks.h), order of the buckets, and the writer of a variable after
  // all its readers. Where a variable cannot be written in place (a reader would come after the writer), adds a kernel
  // that copies the new value at the end.
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

} // namespace mtc
