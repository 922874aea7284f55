// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/MtDialect.h"

using namespace mlir;
using namespace mlir::mt;

#include "dialects/mt/MtDialect.cpp.inc"
#include "dialects/mt/MtEnums.cpp.inc"
#include "dialects/mt/MtInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/mt/MtAttributes.cpp.inc"
void MtDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/mt/MtAttributes.cpp.inc"
      >();
  registerMtDialectOperations(this);
}
