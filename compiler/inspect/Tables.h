// SPDX-License-Identifier: Apache-2.0
//
// The contents of a plan as tables for all printers.
#ifndef COMPILER_INSPECT_TABLES_H
#define COMPILER_INSPECT_TABLES_H

#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Table.h"

namespace mtc {

Table targetTable(const mt::plan::Plan &plan);
// The memory of a device by the shards that it computes.
Table memoryTable(const mt::plan::Plan &plan);
// By number of devices: the bytes of variables of the device that has most, if the devices divide the optimizer.
Table optimizerTable(const mt::plan::Plan &plan);
Table variableTable(const mt::plan::Plan &plan);
Table kernelTable(const mt::plan::Plan &plan);
Table signatureTable(const mt::plan::Program &program);
Table metricTable(const mt::plan::Program &program);
// The costs are for one device that computes the whole batch.
Table stepTable(const mt::plan::Plan &plan, const ProgramFacts &facts);
Table collectiveTable(const mt::plan::Plan &plan, const ProgramFacts &facts);

// An array of numbers or of names.
template <typename Number> Cell listOf(const flatbuffers::Vector<Number> *numbers) {
  llvm::json::Array array;
  for (Number number : each(numbers))
    array.push_back(number);
  return llvm::json::Value(std::move(array));
}
Cell listOf(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *names);
// A name, which may be absent.
std::string text(const flatbuffers::String *name);
// How a grid divides the work: "rows / 16 x 4".
std::string gridText(uint64_t rowsPerTile, uint64_t innerTiles, uint64_t elementsPerTile);
// For a page: a kernel's name in its color, and what a launch reads and writes.
Cell launchCell(const mt::plan::Plan &plan, const mt::plan::Step &step);
Cell operandsCell(const mt::plan::Plan &plan, const mt::plan::Program &program, const mt::plan::Step &step);
// How many FLOPs a byte, "-" without bytes on text and nothing on a page.
Cell intensityCell(const LaunchCost &cost);

} // namespace mtc

#endif
