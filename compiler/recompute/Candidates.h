// SPDX-License-Identifier: Apache-2.0
//
// Which kernels could run a second time so that what they computed need not wait in memory.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace mtc {

// When each kernel runs, in phases: kernels of one phase run side by side.
using Phases = llvm::DenseMap<mlir::Operation *, int64_t>;

// A kernel's result, and that of the kernel's second run.
using SecondRuns = llvm::DenseMap<mlir::Value, mlir::Value>;

struct Candidate {
  mlir::mt::KernelOp kernel;
  std::vector<mlir::OpOperand *> late; // what its second run would serve
  int64_t savedBytes = 0;              // at the peak, less what its operands then hold on to
  int64_t flops = 0;                   // of the second run
  size_t position = 0;                 // in the program
};

// Candidates that lower the fullest phase of the program, the most bytes per FLOP first; equals in program order.
// `second`: what runs again already. `rows`: of a device that hosts all shards.
std::vector<Candidate> findCandidates(mlir::mt::ProgramOp program, const Phases &phases, const SecondRuns &second,
                                      int64_t rows);

} // namespace mtc
