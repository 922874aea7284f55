// SPDX-License-Identifier: Apache-2.0
//
// The graph of fusion groups: which ops of a program go into one kernel. A group is either a set of computations, which
// becomes one kernel, or one op that stays between kernels. The graph stays acyclic: two groups are not merged if a
// path between them passes through a third one.
//
// Two kinds of edges are not in the IR's operands. All-reduces of one bucket complete together, and buckets complete in
// order, so a reader of bucket b depends on every producer of the buckets up to b. An op that belongs to a block of
// classes depends on all ops of the block before (a block's number is its turn, dialects/mt/Blocks.h).
#pragma once

#include "compiler/AcyclicGraph.h"
#include "compiler/fuse/Computations.h"
#include "dialects/mt/Blocks.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <optional>
#include <vector>

namespace mtc {

struct FusionGroup {
  std::optional<mlir::mt::KernelKind> kind; // none: an op that stays between kernels
  std::vector<mlir::Operation *> ops;       // in program order; empty once merged into another group
  unsigned reductionDepth = 0;              // all-reduces on the longest path to here
  std::optional<bool> livesByLine = {};     // cached result of FusionGraph::livesByLine
  bool afterProduct = false;                // it depends on a matrix product
  bool early = false;                       // it does not, and an all-reduce that others wait for depends on it
  std::optional<mlir::mt::Turn> turn = {};  // the block of classes that its ops belong to
};

class FusionGraph {
public:
  // Classifies every op of the body; errors name ops that no kernel can hold.
  static mlir::FailureOr<FusionGraph> classify(mlir::Block &body);

  // Applies the merging rules described in Fuse.cpp.
  void fuseAttention();
  void fuseEpilogues();
  void fuseSmallConvolutions();
  void fuseRows(bool images);
  void fuseReductions();
  void fuseElementwise();
  void fuseSingle(int64_t maxBytes);

  // Groups in an order that respects dependencies and, where those allow, the program's order.
  std::vector<const FusionGroup *> ordered() const;

  bool isRecomputed(mlir::Value value) const { return recomputed.contains(value); }

private:
  explicit FusionGraph(mlir::Block &body) : body(&body), recomputed(body) {}
  // The ops that read a result of `op`, each once, in program order. MLIR's use lists are not in program order.
  llvm::ArrayRef<mlir::Operation *> users(mlir::Operation *op) const { return readers[position.at(op)]; }
  std::optional<unsigned> groupOf(mlir::Operation *op) const;
  bool isOfEither(mlir::Operation *op, unsigned a, unsigned b) const;
  std::optional<unsigned> producer(mlir::Value value) const;
  void connect(unsigned group);
  void connectAll();
  llvm::SmallSetVector<unsigned, 8> adjacent(unsigned group) const; // producers, users, readers of a large operand
  bool fitTogether(unsigned a, unsigned b) const;
  bool canMerge(unsigned a, unsigned b) const;
  void merge(unsigned into, unsigned from);
  void join(unsigned into, unsigned from);
  void mergeAdjacent(mlir::mt::KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed);
  void extendEpilogue(unsigned matmul);
  void shrinkEpilogue(unsigned matmul);
  void separate(unsigned matmul, mlir::Operation *op);
  void mergeRepeated();
  void mergeBlocks();
  llvm::ArrayRef<mlir::Operation *> nextTurn(mlir::Operation *op) const;
  llvm::ArrayRef<mlir::Operation *> formerTurn(mlir::Operation *op) const;
  void mergeProduct(mlir::mt::ReduceOp sum, mlir::mt::MatmulOp product);
  void numberOps();
  void computeDepths();
  void findEarly();
  bool isElementwise(mlir::Operation *op) const;
  bool fitsByLine(unsigned a, unsigned b) const;
  int64_t bytesBetween(unsigned a, unsigned b) const;
  bool livesByLine(unsigned group, bool images);
  bool feedsColumnsAlone(unsigned group, unsigned sums) const;
  size_t buffersOf(unsigned a, unsigned b) const;
  bool fitRegisters(unsigned a, unsigned b) const;
  bool mayShareRows(unsigned a, unsigned b, bool images);
  mlir::FailureOr<std::optional<mlir::mt::KernelKind>> kindOf(mlir::Operation *op) const;
  std::vector<unsigned> groupsOf(mlir::mt::KernelKind kind) const;

  mlir::Block *body;
  RecomputedValues recomputed;
  std::map<int64_t, unsigned> completions; // for each bucket of all-reduces a group without ops: "they are complete"
  std::map<mlir::mt::Turn, std::vector<mlir::Operation *>> turns; // which come one after the other
  std::vector<FusionGroup> groups;
  llvm::DenseMap<mlir::Operation *, unsigned> groupOfOp;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  std::vector<llvm::SmallVector<mlir::Operation *, 2>> readers; // by position
  AcyclicGraph edges;                                           // between groups
};

} // namespace mtc
