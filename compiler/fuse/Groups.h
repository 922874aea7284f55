// SPDX-License-Identifier: Apache-2.0
//
// Which ops of a program go into one kernel. A unit is a group of computations (a kernel to be) or one op that stays
// between kernels. The graph of units never gets a cycle: a merge is refused if a path leaves the merged unit and comes
// back. All-reduces of a bucket finish together and buckets in order, so what reads one of them comes after what all of
// its bucket and of earlier ones wait for.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <optional>
#include <vector>

namespace mtc {

struct Unit {
  std::optional<mlir::mt::KernelKind> kind; // none: an op that stays between kernels
  std::vector<mlir::Operation *> ops;       // in program order; empty once merged into another unit
  unsigned reductionDepth = 0;              // all-reduces on the longest path to here
};

class Groups {
public:
  // Classifies every op of the body; errors name ops that no kernel can hold.
  static mlir::FailureOr<Groups> classify(mlir::Block &body);

  // Applies the merging rules described in Fuse.cpp.
  void fuseEpilogues();
  void joinThinConvolutions();
  void fuseRows(bool images);
  void fuseReductions();
  void fuseMaps();
  void fuseWhole();

  // Units in an order that respects dependencies and, where those allow, the program's order.
  std::vector<const Unit *> ordered() const;

  // True for values that every kernel computes for itself: scalar and splat constants, iota, the batch size, scalars
  // made of these.
  static bool isCheap(mlir::Value value);

private:
  std::optional<unsigned> unitOf(mlir::Operation *op) const;
  std::optional<unsigned> producer(mlir::Value value) const;
  using Set = llvm::SmallSetVector<unsigned, 8>;
  const Set &successors(unsigned unit) const;
  Set findSuccessors(unsigned unit) const;
  Set neighbours(unsigned unit) const; // producers, users and units that share a large operand
  bool hasIndirectPath(unsigned from, unsigned to) const;
  bool canMerge(unsigned a, unsigned b) const { return a != b && !hasIndirectPath(a, b) && !hasIndirectPath(b, a); }
  void rankUnits() const;
  void joinRanks(unsigned into, unsigned from);
  void forgetGraph();
  void merge(unsigned into, unsigned from);
  void mergeNeighbours(mlir::mt::KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed);
  void absorb(unsigned matmul);
  void release(unsigned matmul);
  void joinRepeated();
  void joinProduct(mlir::mt::ReduceOp sum, mlir::mt::MatmulOp product);
  void computeDepths();

  mlir::Block *body = nullptr;
  std::vector<std::pair<int64_t, mlir::Operation *>> allReduces; // with their buckets, where these are known
  std::vector<Unit> units;
  llvm::DenseMap<mlir::Operation *, unsigned> unitOfOp;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  // What is known of the graph: successors, each unit's place in a topological order, and the units in that order.
  mutable std::vector<std::optional<Set>> known;
  mutable std::vector<unsigned> rank, ranked;
};

} // namespace mtc
