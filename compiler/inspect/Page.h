// SPDX-License-Identifier: Apache-2.0
//
// The parts of the page of a plan. Each writes one section.
#ifndef COMPILER_INSPECT_PAGE_H
#define COMPILER_INSPECT_PAGE_H

#include "compiler/inspect/Measured.h"
#include "runtime/abi/plan_file.h"
#include "runtime/support/html.h"

#include "llvm/Support/raw_ostream.h"

#include <optional>

namespace mtc {

// What all sections read.
struct PageFacts {
  const mtrun::PlanFileView &view;
  const mt::plan::Plan &plan;
  const mt::plan::Program *program; // null: the plan has none
  std::vector<LayerFacts> layers;   // of the program
  std::optional<Measured> measured;

  explicit PageFacts(const mtrun::PlanFileView &view);
};

// Beside the style of all pages.
extern const char *const planStyle;

// The layers, each with its launches.
void writeLayers(const PageFacts &facts, llvm::raw_ostream &out);
// A row for every number of devices: who works on which rows, in how much memory.
void writeDevices(const PageFacts &facts, llvm::raw_ostream &out);
// What a device's memory is taken by, and what is where in its arena from step to step.
void writeMemory(const PageFacts &facts, llvm::raw_ostream &out);
// Variables, kernels, and each program's graph and schedule, folded.
void writeDetails(const PageFacts &facts, llvm::raw_ostream &out);

// Helpers of all of them.
std::string html(const flatbuffers::String *text);
void tableHead(llvm::raw_ostream &out, std::initializer_list<llvm::StringRef> names); // "#name": of numbers
void numberCell(llvm::raw_ostream &out, const std::string &text);
void textCell(llvm::raw_ostream &out, const std::string &html);
// A kernel's name, and what it reads and writes.
void launchCells(llvm::raw_ostream &out, const PageFacts &facts, const mt::plan::Program &program,
                 const mt::plan::Step &step);
// The class of a color that kernels of a kind always have.
char colorOf(llvm::StringRef kind);
// A bar of a part of a whole, and a part of that in a stronger color.
void bar(llvm::raw_ostream &out, double part, double inner = 0);

} // namespace mtc

#endif
