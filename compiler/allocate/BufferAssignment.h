// SPDX-License-Identifier: Apache-2.0
//
// Buffer assignment: the memory space and the offset of each value of a program.
#pragma once

#include "compiler/allocate/Parts.h"
#include "compiler/allocate/PlanEntries.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mtc {

// An allocation in the arena or in the shared block. Several values may use it: one after the other, in place, or as
// members of a bucket.
struct Allocation {
  std::string name;
  bool shared = false, reduced = false; // in the shared block; contains the results of a bucket of all-reduces
  int64_t fixedBytes = 0, rowBytes = 0;
  int64_t first = 0, last = 0;  // live range, in phases (arena) or rendezvous (shared): PlanEntry
  std::vector<int64_t> offsets; // arena: one per variant; shared: one offset
};

struct ValueBuffer {
  mlir::plan::Space space = mlir::plan::Space::arena;
  std::string name;
  std::string ref;         // name of the variable, or of the value of the signature
  int64_t allocation = -1; // arena and shared block: index in `allocations`
  int64_t offset = 0;      // in bytes, from the start of the allocation
};

class BufferAssignment {
public:
  // `microBatches`: a value in the shared block that kernels read stays live, because these kernels may run again in a
  // later part of the program (runtime/support/phases.h).
  // `continued`: sums that stay in their memory through the whole program, because it runs again for another part of
  // the same shard.
  BufferAssignment(mlir::mt::ProgramOp program, const std::vector<PlanEntry> &entries, bool microBatches,
                   const ContinuedSums &continued);

  // Assigns the offsets of all allocations, for devices of 1, 2, 4 ... `allShards` shards of `shardRows` rows. Fails,
  // with an error at `location`, if an allocation or the arena would be larger than 2^46 bytes.
  llvm::LogicalResult assignOffsets(mlir::Location location, int64_t allShards, int64_t shardRows);

  std::vector<Allocation> allocations;
  llvm::MapVector<mlir::Value, ValueBuffer> buffers;
  std::vector<int64_t> bucketBytes;            // one per entry; 0 for launches
  std::vector<int64_t> arenaBytes, boundBytes; // one per variant
  int64_t sharedBytes = 0;

private:
  struct LastUse {
    int64_t phase = 0, rendezvous = 0;    // of the last reader
    const PlanEntry *lastEntry = nullptr; // a reader in the last phase
    bool readByMore = false;              // the phase has further readers
  };
  void computeLastUses();
  void assignOutside();
  void assignBucket(size_t entry);
  void assignResults(const PlanEntry &entry, mlir::mt::KernelOp kernel);
  bool reuseVariable(const PlanEntry &entry, mlir::OpResult result);
  bool reuseOperand(const PlanEntry &entry, mlir::mt::KernelOp kernel, mlir::OpResult result);
  void packShared();
  void packArena(int64_t rows);
  llvm::LogicalResult checkSizes(mlir::Location location, int64_t rows);

  mlir::Block *body;
  const std::vector<PlanEntry> &entries;
  bool microBatches;
  ContinuedSums continued;
  int64_t lastPhase = 0, lastRendezvous = 0, bucketEnd = 0, bucketCount = 0;
  llvm::DenseMap<mlir::Value, LastUse> lastUses;
  llvm::DenseMap<mlir::Operation *, int64_t> phases; // of kernels
  llvm::DenseSet<mlir::Value> partialSums;           // operands of all-reduces
  llvm::StringSet<> readVariables;
  llvm::StringSet<> reusedVariables; // by a value that a kernel reads to write them
};

} // namespace mtc
