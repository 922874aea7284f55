// SPDX-License-Identifier: Apache-2.0
//
// Parts and other orders of constants, which are constants themselves.
#ifndef FRONTEND_LOGICAL_CONSTANTS_H
#define FRONTEND_LOGICAL_CONSTANTS_H

#include "frontend/logical/Values.h"

namespace mtc::logical {

// Which element, row major, of another tensor the element at some indices is.
struct IndexMap {
  int64_t start = 0;
  llvm::SmallVector<int64_t> strides; // for each axis
};
llvm::SmallVector<int64_t> rowMajor(llvm::ArrayRef<int64_t> shape);
// A constant of those elements of `stored`. Null: it is no constant, or there would be too many elements.
mlir::Value foldConstant(Ops &ops, mlir::Value stored, llvm::ArrayRef<int64_t> shape, const IndexMap &map);

} // namespace mtc::logical

#endif
