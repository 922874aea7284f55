// SPDX-License-Identifier: Apache-2.0
//
// The command mtrun data, and opening data for other commands.
#include "runtime/support/text.h"
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Run.h"

#include <cstdio>
#include <set>

namespace mtrun_tool {

// Adds the keys of a specification that are also flags.
static std::string withFlags(const Arguments &arguments, const std::string &spec) {
  return spec + (arguments.strict ? ",strict=yes" : "") + (arguments.loop.allow_nan ? ",nan=yes" : "") +
         (arguments.session.unchecked_ids ? ",ids=unchecked" : "");
}

// Prints each note once, in process 0: notes about training and validation data are often equal.
static void warnOnce(void *process, const char *note) {
  static std::set<std::string> said;
  if (*static_cast<const int32_t *>(process) == 0 && said.insert(note).second)
    fprintf(stderr, "mtrun: warning: %s\n", mtrun::printable(note).c_str());
}

DatasetPtr openData(const Run &run, const Arguments &arguments, const std::string &spec) {
  mtrun_dataset *dataset = nullptr;
  check(mtrun_dataset_open(run.plan.get(), withFlags(arguments, spec).c_str(), &dataset));
  DatasetPtr data(dataset);
  int32_t process = arguments.session.process;
  mtrun_dataset_notes(dataset, warnOnce, &process);
  return data;
}

int data(const Arguments &arguments) {
  auto line = [](void *, const char *text) { print(mtrun::printable(text) + "\n"); };
  std::string spec = withFlags(arguments, arguments.data);
  if (arguments.speed)
    check(mtrun_data_benchmark(spec.c_str(), arguments.rows ? arguments.rows : 64, arguments.seconds, line, nullptr));
  else if (!arguments.saveColumns.empty())
    check(mtrun_data_columns(spec.c_str(), arguments.saveColumns.c_str(), line, nullptr));
  else
    check(mtrun_data_describe(spec.c_str(), arguments.samples, line, nullptr));
  return MT_OK;
}

} // namespace mtrun_tool
