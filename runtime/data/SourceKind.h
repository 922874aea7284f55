// SPDX-License-Identifier: Apache-2.0
//
// The kinds of data sources. The file of a kind's reader defines its SourceKind; the syntax for users, errors and help
// are derived from it.
#pragma once

#include "runtime/support/status.h"

#include <span>
#include <string_view>

namespace mtrun {

struct DataSpec;
struct Table;

struct SourceKind {
  std::string_view name; // text before the colon
  const char *form;      // syntax for users, such as "mnist:DIR"
  const char *help;      // help in one line
  std::string_view keys; // keys in addition to the common keys, such as "x=, y=, header="; Spec.cpp parses them
  Status (*open)(const DataSpec &spec, Table &table);
  size_t paths = 1;        // maximum number of paths
  bool divides = false;    // values are divided by 255 unless the user or the model scales them
  bool anyScale = false;   // numbers of unknown scale: warn if the columns have very different scales
  bool columns = false;    // samples are encoded by the plan's columns file, if it has one
  bool vocabulary = false; // tokens are characters of the plan's vocabulary, if it has one

  bool takes(std::string_view key) const;
};

// Returns all kinds, in the order of errors and help.
std::span<const SourceKind *const> sourceKinds();
// Returns NULL if no kind has this name.
const SourceKind *findSourceKind(std::string_view name);

} // namespace mtrun
