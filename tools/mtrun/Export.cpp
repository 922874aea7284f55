// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Run.h"

#include <cstdio>

namespace mtrun_tool {

int exportModel(const Arguments &given) {
  Arguments arguments = given;
  // Every variable comes from the file: no code has to run here.
  if (!arguments.checkpoint.empty())
    arguments.devices = "null:1";
  arguments.load = arguments.checkpoint;
  Run run = open(arguments);
  bool tensors = arguments.output.ends_with(".safetensors");
  check((tensors ? mtrun_save : mtrun_export)(run.session.get(), arguments.output.c_str()));
  printf("wrote %s\n", arguments.output.c_str());
  return MT_OK;
}

} // namespace mtrun_tool
