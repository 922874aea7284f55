// SPDX-License-Identifier: Apache-2.0
//
// Candidates for rematerialization: kernels that can run a second time, so that their results need not stay in memory.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace mtc {

// The phase of each kernel. A phase is an interval between barriers: its kernels run concurrently.
using Phases = llvm::DenseMap<mlir::Operation *, int64_t>;

// Maps a result of a kernel to the same result of the kernel's second run.
using SecondRuns = llvm::DenseMap<mlir::Value, mlir::Value>;

struct Candidate {
  mlir::mt::KernelOp kernel;
  std::vector<mlir::OpOperand *> late; // uses that would read the result of the second run
  int64_t savedBytes = 0; // memory saved at the peak, minus that of operands whose live ranges become longer
  int64_t flops = 0;      // of the second run
  size_t position = 0;    // of the kernel in the program
};

// Candidates that lower the memory of the program's peak phase, by decreasing saved bytes per FLOP, then in program
// order. `second`: kernels that already run a second time. `rows`: rows of a device that holds all shards.
std::vector<Candidate> findCandidates(mlir::mt::ProgramOp program, const Phases &phases, const SecondRuns &second,
                                      int64_t rows);

} // namespace mtc
