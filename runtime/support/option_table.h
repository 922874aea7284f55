// SPDX-License-Identifier: Apache-2.0
//
// The options of the C API's structs, as the comments of their fields describe them: the command lines of mtc and
// mtrun, their help and manual pages, and the checks and defaults of mtc_options follow from these tables.
#pragma once

#include "runtime/abi/mtc.h"
#include "runtime/abi/mtrun.h"

#include <cmath>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mtrun {

enum class OptionForm {
  value,  // a number or a text
  toggle, // without a value: 1 where it is given
  bytes,  // a number that may be written 16GiB
  index,  // one of `words`: its number
  list    // a text each time it is given, with semicolons between them
};

template <typename Struct> struct Option {
  std::variant<int Struct::*, int64_t Struct::*, double Struct::*, const double *Struct::*, const char *Struct::*>
      field;
  const char *name;     // of the field
  const char *group;    // of the help; "": the first one
  const char *flags;    // all names
  const char *value;    // what the help calls the value
  const char *standard; // the value where none is given; "": none, or one that depends on others
  const char *help;
  OptionForm form;
  const char *words; // "auto|none": all values that a text may have
  double min, max;
  const char *without, *after; // options that must not be there, and that must be
  bool shared;                 // mtrun takes it too, for a model in place of a plan

  std::string flag() const { return std::string(std::string_view(flags).substr(0, std::string_view(flags).find(','))); }
  std::vector<std::string> wordList() const {
    std::vector<std::string> list;
    for (std::string_view rest = words; !rest.empty();) {
      size_t end = std::min(rest.find('|'), rest.size());
      list.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return list;
  }
};

#include "runtime/abi/option_rows.inc"

} // namespace mtrun
