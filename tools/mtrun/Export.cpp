// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Outputs.h"
#include "tools/mtrun/Run.h"

namespace mtrun_tool {

int exportModel(const Arguments &requested) {
  Arguments arguments = requested;
  commandline::OutputFolders folders;
  prepareFile(folders, arguments.output);
  Run run = loadPlan(arguments);
  check(mtrun_check_save(run.plan.get(), arguments.output.c_str()));
  // If the file has every variable, no code has to run: the null device is enough.
  if (isComplete(arguments.load))
    arguments.devices = "null:1";
  bind(run, arguments);
  check(mtrun_save(run.session.get(), arguments.output.c_str()));
  print("wrote " + arguments.output + "\n");
  return MT_OK;
}

} // namespace mtrun_tool
