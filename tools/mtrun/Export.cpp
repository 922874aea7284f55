// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Run.h"

#include <cstdio>
#include <filesystem>

namespace mtrun_tool {

// The file of variables: `path` itself, the one in a checkpoint, or the one in the newest checkpoint of a folder.
static std::string findVariables(const std::string &path) {
  namespace fs = std::filesystem;
  constexpr const char *file = "variables.safetensors";
  std::error_code error;
  if (!fs::is_directory(path, error))
    return path;
  if (fs::exists(fs::path(path) / file, error))
    return (fs::path(path) / file).string();
  std::string newest; // names have numbers of one length
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (std::string name = entry->path().filename().string(); name.starts_with("step-") && name > newest)
      newest = name;
  if (error)
    throw Failure{MT_IO, "cannot read " + path + ": " + error.message()};
  if (newest.empty())
    throw Failure{MT_INVALID, "expected a file of variables or a folder of checkpoints, found neither in " + path};
  return (fs::path(path) / newest / file).string();
}

int exportModel(const Arguments &given) {
  Arguments arguments = given;
  // Every variable comes from the file: no code has to run here.
  if (!arguments.checkpoint.empty())
    arguments.devices = "null:1";
  arguments.load = arguments.checkpoint.empty() ? "" : findVariables(arguments.checkpoint);
  Run run = open(arguments);
  bool tensors = arguments.output.ends_with(".safetensors");
  check((tensors ? mtrun_save : mtrun_export)(run.session.get(), arguments.output.c_str()));
  printf("wrote %s\n", arguments.output.c_str());
  return MT_OK;
}

} // namespace mtrun_tool
