// SPDX-License-Identifier: Apache-2.0
#include "dialects/graph/GraphDialect.h"

#include "dialects/mt/Syntax.h"

using namespace mlir;
using namespace mlir::graph;
using mlir::mt::parseReal, mlir::mt::printReal;

static constexpr int64_t maxElements = int64_t{1} << 46; // so that products of sizes do not overflow

// `b`, `16*b` or `16`. A multiple k of the batch is the number -k.
static ParseResult parseSize(AsmParser &parser, SmallVectorImpl<int64_t> &sizes) {
  SMLoc location = parser.getCurrentLocation();
  int64_t number = 1;
  OptionalParseResult found = parser.parseOptionalInteger(number);
  if (found.has_value() && failed(*found))
    return failure();
  if (number < 1)
    return parser.emitError(location, "expected a size of 1 or more, found ") << number;
  bool batch = !found.has_value() || succeeded(parser.parseOptionalStar());
  if (batch && parser.parseKeyword("b", ", the batch, or a number as a size"))
    return failure();
  sizes.push_back(batch ? -number : number);
  return success();
}
static ParseResult parseSizes(AsmParser &parser, SmallVector<int64_t> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parseSize(parser, sizes); });
}
static void printSizes(AsmPrinter &printer, ArrayRef<int64_t> sizes) {
  printer << "[";
  llvm::interleaveComma(sizes, printer, [&](int64_t size) {
    if (size > 0)
      printer << size;
    else if (size == -1)
      printer << "b";
    else
      printer << -size << "*b";
  });
  printer << "]";
}

LogicalResult ValueType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> sizes,
                                Type element) {
  if (!element.isF32() && !element.isF64() && !element.isInteger(32) && !element.isInteger(1))
    return emitError() << "expected elements of f32, f64, i32 or i1, found " << element;
  if (sizes.size() > maxRank)
    return emitError() << "expected at most " << maxRank << " axes, found " << sizes.size();
  int64_t elements = 1;
  for (int64_t size : sizes) {
    if (size == 0 || size == INT64_MIN)
      return emitError() << "expected sizes of 1 or more";
    if (__builtin_mul_overflow(elements, std::abs(size), &elements) || elements > maxElements)
      return emitError() << "expected at most 2^46 elements, found more";
  }
  return success();
}

#include "dialects/graph/GraphDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/graph/GraphTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/graph/GraphOps.cpp.inc"

void GraphDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/graph/GraphTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/GraphOps.cpp.inc"
      >();
}
