// SPDX-License-Identifier: Apache-2.0
//
// The sections of a plan's page. Each function writes one section.
#ifndef COMPILER_INSPECT_PAGE_H
#define COMPILER_INSPECT_PAGE_H

#include "compiler/inspect/Measured.h"
#include "runtime/abi/plan_file.h"
#include "runtime/support/html.h"

#include "llvm/Support/raw_ostream.h"

#include <optional>

namespace mtc {

// The facts that all sections read.
struct PageFacts {
  const mtrun::PlanFileView &view;
  const mt::plan::Plan &plan;
  const mt::plan::Program *program; // null: the plan has no program
  std::vector<LayerFacts> layers;   // layers of the program
  std::optional<Measured> measured;

  explicit PageFacts(const mtrun::PlanFileView &view);
};

// The style of this page, in addition to the style of all pages.
extern const char *const planStyle;

// Writes the layers, each with its launches.
void writeLayers(const PageFacts &facts, llvm::raw_ostream &out);
// Writes a row for every number of devices: the rows of the batch and the memory of each device.
void writeDevices(const PageFacts &facts, llvm::raw_ostream &out);
// Writes the parts of a device's memory, and the map of its arena over the steps.
void writeMemory(const PageFacts &facts, llvm::raw_ostream &out);
// Writes the folded variables and kernels, and the graph and the schedule of each program.
void writeDetails(const PageFacts &facts, llvm::raw_ostream &out);

// Helpers of all sections.
std::string html(const flatbuffers::String *text);
void tableHead(llvm::raw_ostream &out, std::initializer_list<llvm::StringRef> names); // "#name": a column of numbers
void numberCell(llvm::raw_ostream &out, const std::string &text);
void textCell(llvm::raw_ostream &out, const std::string &html);
// Writes the cells of a launch: the name of the kernel, and what the launch reads and writes.
void launchCells(llvm::raw_ostream &out, const PageFacts &facts, const mt::plan::Program &program,
                 const mt::plan::Step &step);
// Returns the class of the color of a kernel kind, the same on every page.
char colorOf(llvm::StringRef kind);
// Writes a bar of `part` of the width, and within it `inner` of the bar in a stronger color.
void bar(llvm::raw_ostream &out, double part, double inner = 0);

} // namespace mtc

#endif
