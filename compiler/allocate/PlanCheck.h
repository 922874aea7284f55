// SPDX-License-Identifier: Apache-2.0
//
// The model of plan-check, made from plan ops alone.
//
// Every thread of every device walks the steps in order. What orders two steps i < j is a barrier that stands before a
// step in (i, j]: of one device's threads (`wait device`), or of all (`wait all`, an all-reduce after a launch, the
// first launch after an all-reduce). A byte of an arena or of a signature tensor is touched by its own device; a byte
// of a variable or of the shared block by all devices. All-reduces touch the partial sums in every arena. Two accesses
// conflict if they share a byte and one of them writes.
//   - by one device: they must be ordered by any barrier;
//   - by two devices, which run the same steps at different times: by a barrier of all;
//   - by two tiles of one launch: only where a kernel reads an element just before it writes the same element.
// Besides, whoever reads a value must find it: no other value may have been written over it in the meantime.
#ifndef COMPILER_ALLOCATE_PLANCHECK_H
#define COMPILER_ALLOCATE_PLANCHECK_H

#include "dialects/plan/PlanDialect.h"

#include <string>
#include <vector>

namespace mtc {

// Bytes [begin, end) of a memory: "arena", "shared", or the name of a variable or signature tensor with a prefix.
struct Bytes {
  std::string memory;
  int64_t begin = 0, end = 0;
  bool overlaps(const Bytes &other) const { return begin < other.end && other.begin < end && memory == other.memory; }
  bool operator==(const Bytes &) const = default;
};

struct Access {
  Bytes bytes;
  mlir::Value buffer; // null: a whole bucket
  bool write = false;
  bool byAll = false;    // other devices touch these bytes too
  int64_t segment = 0;   // of its launch
  unsigned argument = 0; // of its kernel: reads, then writes
};

enum class Barrier { none, device, all };

struct CheckedStep {
  mlir::Operation *op = nullptr;
  Barrier before = Barrier::none;
  std::vector<Access> accesses;
};

// One program as a device of `shards` shards runs it; `alone`: there is no other device, so results of all-reduces are
// the partial sums.
std::vector<CheckedStep> modelOf(mlir::plan::ProgramOp program, size_t variant, int64_t rows, bool alone);

// Each emits an error at the step that breaks the rule.
llvm::LogicalResult checkOrder(llvm::ArrayRef<CheckedStep> steps, mlir::SymbolTable &symbols, bool alone);
llvm::LogicalResult checkValues(llvm::ArrayRef<CheckedStep> steps, bool alone);

} // namespace mtc

#endif
