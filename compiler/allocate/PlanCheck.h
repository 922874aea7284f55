// SPDX-License-Identifier: Apache-2.0
//
// The model of plan-check, which is built from plan ops alone.
//
// Every thread of every device executes the steps in order. Two steps i < j are ordered if a barrier is before a step
// in (i, j]: a barrier of the threads of one device (`wait device`), or of all devices (`wait all`, an all-reduce after
// a launch, the first launch after an all-reduce). Only one device accesses a byte of its arena or of a signature
// tensor; all devices access the bytes of variables and of the shared block. All-reduces access the partial sums in
// every arena. Two accesses conflict if they share a byte and one of them writes:
//   - accesses by one device must be ordered by any barrier;
//   - accesses by two devices, which execute the same steps at different times, by a barrier of all devices;
//   - accesses by two tiles of one launch may conflict only if a kernel reads an element just before it writes the
//     element.
// In addition, a read must find the value that it reads: no other value may have been written over it.
#ifndef COMPILER_ALLOCATE_PLANCHECK_H
#define COMPILER_ALLOCATE_PLANCHECK_H

#include "dialects/plan/PlanDialect.h"

#include <string>
#include <vector>

namespace mtc {

// Bytes [begin, end) of a memory: "arena", "shared", or a prefix with the name of a variable or signature tensor.
struct Bytes {
  std::string memory;
  int64_t begin = 0, end = 0;
  bool overlaps(const Bytes &other) const { return begin < other.end && other.begin < end && memory == other.memory; }
  bool operator==(const Bytes &) const = default;
};

struct Access {
  Bytes bytes;
  mlir::Value buffer; // null: the access is to a whole bucket
  bool write = false;
  bool byAll = false;    // other devices access these bytes too
  int64_t segment = 0;   // segment of the launch
  unsigned argument = 0; // argument of the kernel: reads come first, then writes
};

enum class Barrier { none, device, all };

struct CheckedStep {
  mlir::Operation *op = nullptr;
  Barrier before = Barrier::none;
  std::vector<Access> accesses;
};

// One program as a device of `rows` rows executes it. `alone`: there is no other device, so results of all-reduces are
// the partial sums.
std::vector<CheckedStep> modelOf(mlir::plan::ProgramOp program, size_t variant, int64_t rows, bool alone);

// The same steps as a GPU executes them: no barrier is before a tail, which waits for the writes of its head alone.
std::vector<CheckedStep> modelWithTails(std::vector<CheckedStep> steps);

// Each function emits an error at the step that violates its rule.
llvm::LogicalResult checkOrder(llvm::ArrayRef<CheckedStep> steps, mlir::SymbolTable &symbols, bool alone);
llvm::LogicalResult checkValues(llvm::ArrayRef<CheckedStep> steps, bool alone);

} // namespace mtc

#endif
