// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/RunOptions.h"

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <variant>

namespace mtrun {

using Json = nlohmann::json;
using Options = mtrun_loop_options;

namespace {

struct RunOption {
  const char *member;
  std::variant<int Options::*, int64_t Options::*, double Options::*, const double *Options::*, const char *Options::*>
      field;
};

// The test of receipts checks that every option of `mtrun train` is here, is another member of a receipt's first line,
// or is in the test's list of options that change no bits.
constexpr RunOption runOptionTable[] = {
    {"drop_remainder", &Options::drop_remainder},
    {"early_baseline", &Options::early_baseline},
    {"early_min_delta", &Options::early_min_delta},
    {"early_monitor", &Options::early_monitor},
    {"early_patience", &Options::early_patience},
    {"early_start_epoch", &Options::early_start_epoch},
    {"initial_epoch", &Options::initial_epoch},
    {"learning_rate", &Options::learning_rate},
    {"monitor", &Options::monitor},
    {"no_shuffle", &Options::no_shuffle},
    {"plateau_cooldown", &Options::plateau_cooldown},
    {"plateau_factor", &Options::plateau_factor},
    {"plateau_min_delta", &Options::plateau_min_delta},
    {"plateau_min_rate", &Options::plateau_min_rate},
    {"plateau_monitor", &Options::plateau_monitor},
    {"plateau_patience", &Options::plateau_patience},
    {"rate_scale", &Options::rate_scale},
    {"shuffle_window", &Options::shuffle_window},
    {"steps_per_epoch", &Options::steps_per_epoch},
    {"validation_freq", &Options::validation_freq},
    {"validation_last", &Options::validation_last},
    {"validation_split", &Options::validation_split},
    {"validation_steps", &Options::validation_steps},
};

} // namespace

std::string exactNumber(double value) {
  char text[40];
  snprintf(text, sizeof text, "%a", value);
  return text;
}

Json runOptions(const Options &options) {
  Json run = Json::object();
  for (const RunOption &option : runOptionTable)
    std::visit(
        [&](auto field) {
          auto value = options.*field;
          if (!value)
            return;
          if constexpr (std::is_same_v<decltype(value), double>)
            run[option.member] = exactNumber(value);
          else if constexpr (std::is_same_v<decltype(value), const double *>)
            run[option.member] = exactNumber(*value);
          else
            run[option.member] = value;
        },
        option.field);
  return run;
}

static bool parseNumber(const Json &json, double &value) {
  if (!json.is_string())
    return false;
  const auto &text = json.get_ref<const std::string &>();
  char *end = nullptr;
  value = strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

static bool setOption(const RunOption &option, const Json &json, Options &options, OptionTexts &texts) {
  double number = 0;
  if (const auto *field = std::get_if<const char *Options::*>(&option.field)) {
    if (!json.is_string())
      return false;
    options.**field = texts.strings.emplace_back(json.get<std::string>()).c_str();
  } else if (const auto *field = std::get_if<double Options::*>(&option.field)) {
    if (!parseNumber(json, number))
      return false;
    options.**field = number;
  } else if (const auto *field = std::get_if<const double *Options::*>(&option.field)) {
    if (!parseNumber(json, number))
      return false;
    options.**field = &texts.numbers.emplace_back(number);
  } else if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX)) {
    return false;
  } else if (const auto *field = std::get_if<int64_t Options::*>(&option.field)) {
    options.**field = json.get<int64_t>();
  } else {
    options.*std::get<int Options::*>(option.field) = json.get<int64_t>() != 0;
  }
  return true;
}

Status setRunOptions(const Json &run, Options &options, OptionTexts &texts) {
  for (const auto &[name, value] : run.items()) {
    if (name == "seed")
      continue; // of the session
    const RunOption *found = nullptr;
    for (const RunOption &option : runOptionTable)
      if (name == option.member)
        found = &option;
    if (!found)
      return {MT_INVALID, "expected options of this version, found \"" + name + "\""};
    if (!setOption(*found, value, options, texts))
      return {MT_INVALID, "expected a value of the option's type for \"" + name + "\", found " + value.dump()};
  }
  return {};
}

} // namespace mtrun
