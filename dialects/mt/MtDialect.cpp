// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Lane.h"

using namespace mlir;
using namespace mlir::mt;

#include "dialects/mt/MtDialect.cpp.inc"
#include "dialects/mt/MtEnums.cpp.inc"
#include "dialects/mt/MtInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/mt/MtAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/mt/MtOps.cpp.inc"

void MtDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/mt/MtAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/mt/MtOps.cpp.inc"
      >();
}
