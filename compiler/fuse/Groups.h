// SPDX-License-Identifier: Apache-2.0
//
// Which ops of a program go into one kernel. A unit is a group of computations (a kernel to be) or one op that stays
// between kernels. The graph of units never gets a cycle: a merge is refused if a path leaves the merged unit and comes
// back. All-reduces of one bucket complete together, and buckets complete in order. So a reader of bucket b depends on
// every producer of the buckets up to b. And what has a turn depends on all of the turn before (dialects/mt/Blocks.h).
#pragma once

#include "compiler/fuse/Computations.h"
#include "dialects/mt/Blocks.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <optional>
#include <vector>

namespace mtc {

struct Unit {
  std::optional<mlir::mt::KernelKind> kind; // none: an op that stays between kernels
  std::vector<mlir::Operation *> ops;       // in program order; empty once merged into another unit
  unsigned reductionDepth = 0;              // all-reduces on the longest path to here
  std::optional<bool> livesByLine;          // Groups::livesByLine, where it is known
  bool afterProduct = false;                // a product makes what it reads
  bool early = false;                       // no product does, and an all-reduce that others wait for needs it
  std::optional<mlir::mt::Turn> turn;       // of its ops that have one
};

class Groups {
public:
  // Classifies every op of the body; errors name ops that no kernel can hold.
  static mlir::FailureOr<Groups> classify(mlir::Block &body);

  // Applies the merging rules described in Fuse.cpp.
  void fuseAttention();
  void fuseEpilogues();
  void joinThinConvolutions();
  void fuseRows(bool images);
  void fuseReductions();
  void fuseMaps();
  void fuseWhole();

  // Units in an order that respects dependencies and, where those allow, the program's order.
  std::vector<const Unit *> ordered() const;

  bool isCheap(mlir::Value value) const { return cheap.contains(value); }

private:
  explicit Groups(mlir::Block &body) : body(&body), cheap(body) {}
  // The ops that read a result of `op`, each once, in program order: a list of uses has an order of its own, which
  // says nothing about the program.
  llvm::ArrayRef<mlir::Operation *> users(mlir::Operation *op) const { return readers[position.at(op)]; }
  std::optional<unsigned> unitOf(mlir::Operation *op) const;
  std::optional<unsigned> producer(mlir::Value value) const;
  using Edges = llvm::SmallDenseSet<unsigned, 4>;
  const Edges &successors(unsigned unit) const;
  Edges findSuccessors(unsigned unit) const;
  llvm::SmallSetVector<unsigned, 8> neighbours(unsigned unit) const; // producers, users, readers of a large operand
  bool hasIndirectPath(unsigned from, unsigned to) const;
  std::vector<bool> haveIndirectPath(unsigned unit, llvm::ArrayRef<unsigned> others) const; // by unit
  bool fitTogether(unsigned a, unsigned b) const;
  bool canMerge(unsigned a, unsigned b) const;
  void rankUnits() const;
  void joinRanks(unsigned into, unsigned from);
  void forgetGraph();
  void redirectEdges(unsigned into, unsigned from);
  void merge(unsigned into, unsigned from);
  void mergeNeighbours(mlir::mt::KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed);
  void absorb(unsigned matmul);
  void release(unsigned matmul);
  void joinRepeated();
  void joinBlocks();
  llvm::ArrayRef<mlir::Operation *> nextTurn(mlir::Operation *op) const;
  void joinProduct(mlir::mt::ReduceOp sum, mlir::mt::MatmulOp product);
  void numberOps();
  void computeDepths();
  void findEarly();
  bool isMap(mlir::Operation *op) const;
  bool fitsByLine(unsigned a, unsigned b) const;
  bool livesByLine(unsigned unit);
  bool mayShareRows(unsigned a, unsigned b, bool images);
  mlir::FailureOr<std::optional<mlir::mt::KernelKind>> kindOf(mlir::Operation *op) const;
  std::vector<unsigned> unitsOf(mlir::mt::KernelKind kind) const;

  mlir::Block *body;
  CheapValues cheap;
  std::vector<std::pair<int64_t, mlir::Operation *>> allReduces; // with their buckets, where these are known
  std::map<mlir::mt::Turn, std::vector<mlir::Operation *>> turns;           // which come one after the other
  std::vector<Unit> units;
  llvm::DenseMap<mlir::Operation *, unsigned> unitOfOp;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  std::vector<llvm::SmallVector<mlir::Operation *, 2>> readers; // by position
  // What is known of the graph: successors, each unit's index in a topological order, the units in that order, and of
  // two units with a path between them an op of another unit on it. Merges leave such a path, until that unit is one of
  // the two.
  mutable std::vector<std::optional<Edges>> known;
  mutable std::vector<unsigned> rank, ranked;
  mutable llvm::DenseMap<std::pair<unsigned, unsigned>, mlir::Operation *> between;
};

} // namespace mtc
