// SPDX-License-Identifier: Apache-2.0
//
// The commands mtrun verify and mtrun diff.
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Run.h"

#include <charconv>
#include <cstdio>

namespace mtrun_tool {
namespace {

// Parses "A:B".
void parseWindow(const std::string &text, mtrun_verify_options &options) {
  const char *end = text.data() + text.size();
  auto [colon, first] = std::from_chars(text.data(), end, options.begin);
  auto [rest, second] = std::from_chars(colon == end ? end : colon + 1, end, options.end);
  if (first != std::errc() || second != std::errc() || *colon != ':' || rest != end || options.begin < 0 ||
      options.end <= options.begin)
    throw Failure{MT_INVALID, "--window: expected two steps A:B with A below B, found " + text};
}

void printLine(void *, const char *text) { print(std::string(text) + "\n"); }

int checkReceipt(const Arguments &arguments) {
  mtrun_verify_options options = mtrun_verify_options_init();
  if (!arguments.window.empty())
    parseWindow(arguments.window, options);
  options.windows = arguments.windows;
  options.seed = arguments.windowSeed;
  options.checkpoints = arguments.checkpoint.empty() ? nullptr : arguments.checkpoint.c_str();
  options.note = printLine;
  Run run = open(arguments);
  DatasetPtr data = openData(run, arguments, arguments.data), validation;
  if (!arguments.validation.empty())
    validation = openData(run, arguments, arguments.validation);
  options.validation = validation.get();
  mtrun_verify_result result = {};
  mt_status *status = mtrun_verify(run.session.get(), data.get(), arguments.receipt.c_str(), &options, &result);
  if (status && result.differs) {
    std::string message = mt_status_message(status);
    mt_status_free(status);
    return arguments.session.process == 0 ? reportError(differing, message) : differing;
  }
  check(status);
  if (arguments.session.process > 0)
    return MT_OK;
  char share[40];
  snprintf(share, sizeof share, "%.3g", 100 * static_cast<double>(result.checked) / static_cast<double>(result.steps));
  print("verified: " + std::to_string(result.checked) + " of " + std::to_string(result.steps) + " steps, " + share +
        " % of the run\n");
  return MT_OK;
}

} // namespace

// Everything that prevents a check has one exit code.
int verify(const Arguments &arguments) {
  try {
    return checkReceipt(arguments);
  } catch (const Failure &failure) {
    throw Failure{MT_INVALID, failure.message};
  }
}

int diff(const Arguments &arguments) {
  Run run;
  if (!arguments.plan.empty())
    run = loadPlan(arguments);
  int differs = 0;
  check(
      mtrun_diff(arguments.paths[0].c_str(), arguments.paths[1].c_str(), run.plan.get(), printLine, nullptr, &differs));
  if (differs)
    return differing;
  print("no difference\n");
  return MT_OK;
}

} // namespace mtrun_tool
