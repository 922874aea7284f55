// SPDX-License-Identifier: Apache-2.0
//
// Limits for the size of kernels, and for the memory and the code of kernels of kind rows and single.
#include "compiler/fuse/FusionGraph.h"

namespace mtc {

using namespace mlir;

// The number of ops of a kernel is limited, which limits its stack and its compile time.
bool FusionGraph::fitTogether(unsigned a, unsigned b) const {
  constexpr size_t maxOps = 200;
  bool otherTurns = groups[a].turn && groups[b].turn && *groups[a].turn != *groups[b].turn;
  return a != b && !otherTurns && groups[a].ops.size() + groups[b].ops.size() <= maxOps;
}

// Bytes of the temporaries of a kernel that joins both groups: results and operands of ops that move data.
int64_t FusionGraph::bytesBetween(unsigned a, unsigned b) const {
  int64_t bytes = 0;
  auto moves = llvm::IsaPred<mt::MoveOpInterface, mt::LookupOpInterface>;
  auto isInside = [&](Operation *op) { return isOfEither(op, a, b); };
  for (unsigned group : {a, b})
    for (Operation *op : groups[group].ops)
      for (Value value : op->getResults()) {
        bool inMemory = moves(op) || llvm::any_of(value.getUsers(), moves);
        auto type = cast<RankedTensorType>(value.getType());
        if (inMemory && llvm::all_of(value.getUsers(), isInside))
          bytes += mt::elementsPerRow(type) * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      }
  return bytes;
}

// Number of operations that a GPU evaluates for an element of a result of both groups, if no value is kept in memory:
// an op that moves data evaluates its operands at other indices, again for each of its readers. So the number may
// double with each of several ops that read parts of one another.
int64_t FusionGraph::evaluationsOf(unsigned a, unsigned b) const {
  constexpr int64_t most = 1 << 20;
  auto moves = llvm::IsaPred<mt::MoveOpInterface>;
  auto isEvaluated = [&](Operation *op) {
    return op && isOfEither(op, a, b) &&
           (moves(op) || isa<mt::ElementwiseOpInterface>(op) || op->hasTrait<mt::Repeats>());
  };
  std::vector<Operation *> ops = opsOfBoth(a, b);
  constexpr int64_t few = 8; // moves, whose evaluations are few
  if (llvm::count_if(ops, moves) < few)
    return 0;
  DenseMap<Operation *, int64_t> evaluations; // for an element of the op's result
  int64_t largest = 0;
  for (Operation *op : ops) {
    SmallVector<Operation *> same = {op}; // ops that are evaluated once, at one index
    llvm::SmallDenseSet<Operation *, 16> seen = {op};
    int64_t sum = 0;
    while (!same.empty()) {
      Operation *next = same.pop_back_val();
      ++sum;
      for (Value operand : next->getOperands()) {
        Operation *from = operand.getDefiningOp();
        if (!isEvaluated(from))
          continue;
        if (moves(next))
          sum = std::min(most, sum + evaluations[from]);
        else if (seen.insert(from).second)
          same.push_back(from);
      }
    }
    evaluations[op] = sum;
    largest = std::max(largest, sum);
  }
  return largest;
}

bool FusionGraph::fitLimits(unsigned a, unsigned b, bool images, int64_t maxBytes) const {
  constexpr int64_t maxEvaluations = 400;
  return (maxBytes == 0 || bytesBetween(a, b) <= maxBytes) && (images || evaluationsOf(a, b) <= maxEvaluations);
}

} // namespace mtc
