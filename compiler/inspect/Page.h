// SPDX-License-Identifier: Apache-2.0
//
// The sections of a plan's page. Each function writes one section.
#ifndef COMPILER_INSPECT_PAGE_H
#define COMPILER_INSPECT_PAGE_H

#include "compiler/inspect/Measured.h"
#include "compiler/inspect/Tables.h"
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
// The class of a color that kernels of a kind always have.
char colorOf(llvm::StringRef kind);
// A bar of a part of a whole, and a part of that in a stronger color.
std::string bar(double part, double inner = 0);

} // namespace mtc

#endif
