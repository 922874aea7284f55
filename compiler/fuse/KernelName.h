// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels for reports and errors: the layer, then the operations, as in `stage2/conv2d+add+relu`.
#pragma once

#include "compiler/fuse/FusionGraph.h"

#include "llvm/ADT/StringSet.h"

namespace mtc {

// Location of the op with most of the work. Reports attribute a kernel's time to its layer.
mlir::Location locationOf(const FusionGroup &group);

class KernelNames {
public:
  // To be called before an op of the program is outlined.
  explicit KernelNames(mlir::mt::ProgramOp program);

  // A name of at most 80 bytes of UTF-8. Kernels may have equal names.
  std::string of(const FusionGroup &group) const;

private:
  llvm::SmallVector<mlir::Operation *> usersInOrder(mlir::Operation *op) const;
  std::string gradientOf(mlir::Value sum) const;
  std::string updateOf(const FusionGroup &group) const;

  llvm::StringSet<> trainable;
  llvm::DenseMap<mlir::Operation *, unsigned> position; // of ops in the program
};

} // namespace mtc
