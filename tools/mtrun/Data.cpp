// SPDX-License-Identifier: Apache-2.0
//
// mtrun data, and what the other commands do with a data specification.
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Run.h"

#include <cstdio>

namespace mtrun_tool {

static std::string withStrict(const Arguments &arguments, const std::string &spec) {
  return arguments.strict ? spec + ",strict=yes" : spec;
}

DatasetPtr openData(const Run &run, const Arguments &arguments, const std::string &spec) {
  mtrun_dataset *dataset = nullptr;
  check(mtrun_dataset_open(run.plan.get(), withStrict(arguments, spec).c_str(), &dataset));
  DatasetPtr data(dataset);
  mtrun_dataset_notes(
      dataset, [](void *, const char *note) { fprintf(stderr, "mtrun: warning: %s\n", note); }, nullptr);
  return data;
}

int data(const Arguments &arguments) {
  auto line = [](void *, const char *text) { print(std::string(text) + "\n"); };
  std::string spec = withStrict(arguments, arguments.data);
  if (arguments.speed)
    check(mtrun_data_benchmark(spec.c_str(), arguments.rows ? arguments.rows : 64, arguments.seconds, line, nullptr));
  else
    check(mtrun_data_describe(spec.c_str(), arguments.samples, line, nullptr));
  return MT_OK;
}

} // namespace mtrun_tool
