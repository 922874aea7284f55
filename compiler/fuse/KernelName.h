// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels for reports and errors: the layer, then what is computed, as in `stage2/conv2d+add+relu`.
#pragma once

#include "compiler/fuse/FusionGraph.h"

#include "llvm/ADT/StringSet.h"

namespace mtc {

// Where most of the work comes from: reports give a kernel's time to that layer.
mlir::Location locationOf(const FusionGroup &group);

class KernelNames {
public:
  // Before any op of the program is outlined.
  explicit KernelNames(mlir::mt::ProgramOp program);

  // At most 80 bytes of UTF-8. Kernels may have equal names.
  std::string of(const FusionGroup &group) const;

private:
  llvm::SmallVector<mlir::Operation *> usersInOrder(mlir::Operation *op) const;
  std::string gradientOf(mlir::Value sum) const;
  std::string updateOf(const FusionGroup &group) const;

  llvm::StringSet<> trainable;
  llvm::DenseMap<mlir::Operation *, unsigned> position; // in the program
};

} // namespace mtc
