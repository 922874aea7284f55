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
  explicit KernelNames(mlir::ModuleOp module);

  // At most 80 bytes of UTF-8. Kernels may have equal names.
  std::string of(const FusionGroup &group) const;

private:
  std::string gradientOf(mlir::Value sum) const;
  std::string updateOf(const FusionGroup &group) const;

  llvm::StringSet<> trainable;
};

} // namespace mtc
