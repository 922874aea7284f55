// SPDX-License-Identifier: Apache-2.0
//
// The graph of fusion groups, which decides the ops of each kernel. A group is either a set of ops that becomes one
// kernel, or one op that stays between kernels. The graph stays acyclic: two groups are not merged if a path between
// them passes through a third group.
//
// Two kinds of edges are not operands in the IR. The all-reduces of a bucket complete at the same time, and buckets
// complete in order, so a reader of bucket b depends on all producers of the buckets 0 to b. An op of a block of
// classes depends on all ops of the previous block (the number of a block is its turn, dialects/mt/Blocks.h).
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
  std::optional<mlir::mt::KernelKind> kind; // nullopt: an op that stays between kernels
  std::vector<mlir::Operation *> ops;       // in program order; empty after the group was merged into another group
  unsigned reductionDepth = 0;              // number of all-reduces on the longest path to the group
  std::optional<bool> livesByLine = {};     // cached result of FusionGraph::livesByLine
  bool afterProduct = false;                // the group depends on a matrix product
  // the group depends on no matrix product, and an all-reduce on which other all-reduces depend depends on the group
  bool early = false;
  std::optional<mlir::mt::Turn> turn = {}; // the block of classes to which its ops belong
};

class FusionGraph {
public:
  // Classifies every op of the body. Fails, with an error at the op, for ops that no kernel can hold.
  static mlir::FailureOr<FusionGraph> classify(mlir::Block &body);

  // Apply the rules that Fuse.cpp describes.
  void fuseAttention();
  void fuseEpilogues(bool gpusAlone);
  void fuseSummedProducts();
  void fuseSmallConvolutions();
  // `maxBytes`: largest size of the temporaries of a kernel; 0: no limit.
  void fuseRows(bool images, int64_t maxBytes);
  void fuseReductions(bool images);
  void fuseElementwise(bool images);
  void fuseSingle(bool images, int64_t maxBytes);

  // Groups in an order that respects the dependencies and otherwise follows the program.
  std::vector<const FusionGroup *> ordered() const;

  bool isRecomputed(mlir::Value value) const { return recomputed.contains(value); }

private:
  explicit FusionGraph(mlir::Block &body) : body(&body), recomputed(body) {}
  // The ops that read a result of `op`, each once, in program order. MLIR's use lists have another order.
  llvm::ArrayRef<mlir::Operation *> users(mlir::Operation *op) const { return readers[position.at(op)]; }
  std::optional<unsigned> groupOf(mlir::Operation *op) const;
  bool isOfEither(mlir::Operation *op, unsigned a, unsigned b) const;
  std::optional<unsigned> producer(mlir::Value value) const;
  void connect(unsigned group);
  void connectAll();
  // producers, users and readers of a common large operand
  llvm::SmallSetVector<unsigned, 8> adjacent(unsigned group) const;
  bool fitTogether(unsigned a, unsigned b) const;
  bool canMerge(unsigned a, unsigned b) const;
  std::vector<mlir::Operation *> opsOfBoth(unsigned a, unsigned b) const;
  void merge(unsigned into, unsigned from);
  void join(unsigned into, unsigned from);
  std::optional<unsigned> firstToMerge(unsigned group, llvm::ArrayRef<unsigned> others,
                                       llvm::function_ref<bool(unsigned, unsigned)> allowed) const;
  void mergeAdjacent(mlir::mt::KernelKind kind, llvm::function_ref<bool(unsigned, unsigned)> allowed);
  void extendEpilogue(unsigned matmul, bool gpusAlone);
  void shrinkEpilogue(unsigned matmul);
  void separate(unsigned matmul, mlir::Operation *op);
  bool isNearStored(mlir::Value value) const;
  bool isBetterLater(mlir::Operation *op, unsigned group) const;
  void mergeRepeated();
  void mergeBlocks();
  llvm::ArrayRef<mlir::Operation *> nextTurn(mlir::Operation *op) const;
  llvm::ArrayRef<mlir::Operation *> formerTurn(mlir::Operation *op) const;
  void takeSummedElements();
  bool collectSummed(mlir::Value value, unsigned group, llvm::SmallVectorImpl<unsigned> &others) const;
  std::optional<int64_t> smallBucketBefore(const FusionGroup &group) const;
  void mergeProduct(mlir::mt::ReduceOp sum, mlir::mt::MatmulOp product);
  void numberOps();
  void computeDepths();
  void findEarly();
  bool isElementwise(mlir::Operation *op) const;
  bool fitsByLine(unsigned a, unsigned b) const;
  int64_t bytesBetween(unsigned a, unsigned b) const;
  int64_t evaluationsOf(unsigned a, unsigned b) const;
  bool fitLimits(unsigned a, unsigned b, bool images, int64_t maxBytes) const;
  bool livesByLine(unsigned group, bool images);
  bool feedsColumnsAlone(unsigned group, unsigned sums) const;
  bool delaysColumns(unsigned sums, unsigned later) const;
  size_t buffersOf(unsigned a, unsigned b) const;
  bool fitRegisters(unsigned a, unsigned b) const;
  bool mayShareRows(unsigned a, unsigned b, bool images);
  mlir::FailureOr<std::optional<mlir::mt::KernelKind>> kindOf(mlir::Operation *op) const;
  std::vector<unsigned> groupsOf(mlir::mt::KernelKind kind) const;

  mlir::Block *body;
  RecomputedValues recomputed;
  // for each bucket of all-reduces, a group without ops that stands for its completion
  std::map<int64_t, unsigned> completions;
  std::map<mlir::mt::Turn, std::vector<mlir::Operation *>> turns; // ops of each turn
  std::vector<FusionGroup> groups;
  llvm::DenseMap<mlir::Operation *, unsigned> groupOfOp;
  llvm::DenseMap<mlir::Operation *, unsigned> position;
  std::vector<llvm::SmallVector<mlir::Operation *, 2>> readers; // by the position of the op
  AcyclicGraph edges;                                           // between groups
};

} // namespace mtc
