// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/StepArguments.h"

#include "llvm/ADT/StringExtras.h"

namespace mtc::stablehlo {

using llvm::StringRef;

namespace {

struct Range {
  int64_t first, last;
  int64_t count() const { return last - first + 1; }
};

// "4" or "4-7".
std::optional<Range> rangeOf(StringRef text) {
  auto [first, last] = text.split('-');
  constexpr uint32_t most = 1000000;
  uint32_t from = 0, to = 0;
  if (first.getAsInteger(10, from) || from > most)
    return std::nullopt;
  if (!text.contains('-'))
    return Range{from, from};
  if (last.getAsInteger(10, to) || to > most || to < from)
    return std::nullopt;
  return Range{from, to};
}

// "0-7:1-8" or "9:10=step": an item of a list.
std::string readItem(const std::string &option, StringRef item, bool split, StepArguments &arguments) {
  std::string wrong = "expected " + option + " as " +
                      (split ? "0,3-5 or ARGUMENT=NAME" : "0-7:1-8 or ARGUMENT:RESULT=NAME") + ", found '" +
                      item.str() + "'";
  auto [numbers, name] = item.split('=');
  auto [given, replaced] = numbers.split(':');
  std::optional<Range> range = rangeOf(given), results = rangeOf(replaced);
  bool named = item.contains('='), hasResults = numbers.contains(':');
  if (!range || (named && (name.empty() || range->count() != 1)) || (hasResults && (split || !results)))
    return wrong;
  if (hasResults && range->count() != results->count())
    return "expected as many results as arguments in " + option + ", found '" + item.str() + "'";
  for (int64_t i = 0; i < range->count(); ++i) {
    StepArgument argument{split, std::nullopt, name.str()};
    if (hasResults)
      argument.result = results->first + i;
    if (!arguments.try_emplace(range->first + i, argument).second)
      return "expected each argument once in --state and --split, found " + std::to_string(range->first + i) + " twice";
  }
  return "";
}

} // namespace

std::string readStepArguments(const TrainingOptions &options, StepArguments &arguments) {
  for (bool split : {false, true}) {
    llvm::SmallVector<StringRef> items;
    StringRef(split ? options.split : options.state).split(items, ',', -1, false);
    for (StringRef item : items)
      if (std::string problem = readItem(split ? "--split" : "--state", item.trim(), split, arguments);
          !problem.empty())
        return problem;
  }
  bool states = false, splits = false;
  for (const auto &[number, argument] : arguments)
    (argument.split ? splits : states) = true;
  if (!states || !splits)
    return std::string("expected arguments in ") + (states ? "--split" : "--state") + " for --step, found none";
  return "";
}

} // namespace mtc::stablehlo
