// SPDX-License-Identifier: Apache-2.0
//
// The options of a fit that change its bits, as a receipt records them.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/support/status.h"

#include <deque>
#include <nlohmann/json.hpp>
#include <string>

namespace mtrun {

// Returns the options that are set, by the names of their fields.
nlohmann::json runOptions(const mtrun_loop_options &options);
// Sets the options of runOptions(). `texts` owns the strings and numbers that `options` then points to. MT_INVALID: an
// unknown option, or a value of another type.
struct OptionTexts {
  std::deque<std::string> strings;
  std::deque<double> numbers;
};
Status setRunOptions(const nlohmann::json &run, mtrun_loop_options &options, OptionTexts &texts);

// Hexadecimal floats keep every bit.
std::string exactNumber(double value);

} // namespace mtrun
