// SPDX-License-Identifier: Apache-2.0
//
// A context that many inputs share: one of its own takes a hundred times as long as the text of a small model. It keeps
// every type, attribute and name that it has seen, so that it is made anew from time to time.
#pragma once

#include "dialects/graph/GraphDialect.h"
#include "dialects/mt/MtDialect.h"

#include <optional>

inline mlir::MLIRContext &sharedContext() {
  constexpr int most = 1000;
  static std::optional<mlir::MLIRContext> context;
  static int used = 0;
  if (used++ % most == 0) {
    mlir::DialectRegistry registry;
    registry.insert<mlir::mt::MtDialect, mlir::graph::GraphDialect>();
    context.reset();
    context.emplace(registry, mlir::MLIRContext::Threading::DISABLED);
  }
  return *context;
}
