// SPDX-License-Identifier: Apache-2.0
//
// Candidates for rematerialization: kernels that can run a second time, so that their results need not stay in memory.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace mtc {

// The phase in which each kernel runs. Kernels of one phase run concurrently.
using Phases = llvm::DenseMap<mlir::Operation *, int64_t>;

// From a kernel's result to the same result of the kernel's second run.
using SecondRuns = llvm::DenseMap<mlir::Value, mlir::Value>;

struct Candidate {
  mlir::mt::KernelOp kernel;
  std::vector<mlir::OpOperand *> late; // the uses that would read the second run's result
  int64_t savedBytes = 0;              // at the peak, minus the operands whose live ranges become longer
  int64_t flops = 0;                   // of the second run
  size_t position = 0;                 // of the kernel in the program
};

// Candidates that lower the memory of the program's peak phase, ordered by saved bytes per FLOP, ties in program order.
// `second`: the kernels that run a second time already. `rows`: of a device that holds all shards.
std::vector<Candidate> findCandidates(mlir::mt::ProgramOp program, const Phases &phases, const SecondRuns &second,
                                      int64_t rows);

} // namespace mtc
