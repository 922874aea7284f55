// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Shapes.h"
#include "dialects/mt/MtDialect.h"

using namespace mlir;
using namespace mtc;

ArrayRef<int64_t> mtc::innerShape(Value value) { return mt::sampleShape(value.getType()); }
int64_t mtc::innerCount(Value value) {
  int64_t count = 1;
  for (int64_t size : innerShape(value))
    count *= size;
  return count;
}

int64_t mtc::linesOf(Value value) {
  return innerCount(value) / std::max<int64_t>(1, tensorOf(value).getShape().back());
}
