// SPDX-License-Identifier: Apache-2.0
#ifndef DIALECTS_MT_DEFAULTS_H
#define DIALECTS_MT_DEFAULTS_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// Adds the defaults of omitted attributes to an adaptor. The parser infers result types before it sets the defaults.
template <typename Op> typename Op::Adaptor withDefaults(MLIRContext *context, typename Op::Adaptor adaptor) {
  typename Op::Properties properties = adaptor.getProperties();
  Op::populateDefaultProperties(OperationName(Op::getOperationName(), context), properties);
  return typename Op::Adaptor(adaptor.getOperands(), adaptor.getAttributes(), properties);
}

} // namespace mlir::mt

#endif
