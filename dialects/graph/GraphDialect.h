// SPDX-License-Identifier: Apache-2.0
//
// The graph dialect: a model as its framework wrote it, before layouts are decided (GraphOps.td).
#ifndef DIALECTS_GRAPH_GRAPHDIALECT_H
#define DIALECTS_GRAPH_GRAPHDIALECT_H

#include "dialects/headers.h"
#include "dialects/mt/MtDialect.h" // enums of reductions

namespace mlir::graph {
// The version of the dialect's text, in the attribute `graph.version` of the module.
inline constexpr int64_t version = 1;
inline constexpr size_t maxRank = 16;
} // namespace mlir::graph

#include "dialects/graph/GraphDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/graph/GraphTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/GraphOps.h.inc"

#endif
