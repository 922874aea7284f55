// SPDX-License-Identifier: Apache-2.0
//
// The kinds of data sources. A kind is one row, which its reader's file ends with; what users write, the errors and the
// help follow from it.
#pragma once

#include "runtime/support/status.h"

#include <span>
#include <string_view>

namespace mtrun {

struct DataSpec;
struct Table;

struct SourceKind {
  std::string_view name; // before the colon
  const char *form;      // as users write it: "mnist:DIR"
  const char *help;      // a line
  std::string_view keys; // beside those that every source takes: "x=, y=, header="; Spec.cpp parses them
  Status (*open)(const DataSpec &spec, Table &table);
  size_t paths = 1;        // at most
  bool divides = false;    // values are divided by 255 unless the user or the model says otherwise
  bool anyScale = false;   // of numbers whose scale nobody knows: a warning where they lie far apart
  bool vocabulary = false; // its tokens are the plan's, where that has a vocabulary

  bool takes(std::string_view key) const;
};

// In the order of errors and help.
std::span<const SourceKind *const> sourceKinds();
// NULL: there is none of this name.
const SourceKind *findSourceKind(std::string_view name);

} // namespace mtrun
