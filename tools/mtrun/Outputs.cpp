// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Outputs.h"

#include "tools/mtrun/Trace.h"

#include <algorithm>
#include <cctype>
#include <ctime>

namespace mtrun_tool {
namespace {

void must(const std::string &problem) {
  if (!problem.empty())
    throw Failure{MT_IO, problem};
}

// Returns the model's name as a part of a file name. The name comes from a plan, which may be untrusted.
std::string fileNameOf(const char *model) {
  constexpr size_t longest = 64;
  std::string name = std::string(model).substr(0, longest);
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && (c != '.' || &c == name.data()))
      c = '_';
  return name.empty() ? "model" : name;
}

// Returns a name such as runs/MODEL-20260102-030405.
std::string stamped(const char *model) {
  time_t now = time(nullptr);
  struct tm local;
  localtime_r(&now, &local);
  char stamp[32];
  strftime(stamp, sizeof stamp, "-%Y%m%d-%H%M%S", &local);
  return "runs/" + fileNameOf(model) + stamp;
}

} // namespace

bool isEpochFile(const std::string &checkpoint) {
  auto ends = [&](const char *suffix) { return checkpoint.ends_with(suffix); };
  return checkpoint.find('{') != std::string::npos || ends(".keras") || ends(".safetensors") || ends(".h5") ||
         ends(".hdf5");
}

void prepareFile(commandline::OutputFolders &folders, const std::string &path) { must(folders.prepareFile(path)); }

Outputs::Outputs(const Arguments &arguments) {
  writes_ = arguments.session.process == 0;
  checkpoints = arguments.checkpoint;
  epochFile = arguments.epochFile;
  if (isEpochFile(checkpoints) && !epochFile.empty())
    throw Failure{MT_INVALID, "expected one pattern for the files of epochs, found --checkpoint " + checkpoints +
                                  " and --epoch-file " + epochFile};
  if (isEpochFile(checkpoints))
    std::swap(checkpoints, epochFile);
  if (!writes_) {
    epochFile.clear();
    return;
  }
  save = arguments.save;
  folder = arguments.run;
  if (!arguments.history.empty()) {
    json = arguments.history + ".json";
    csv = arguments.history + ".csv";
  }
  std::string receipt = arguments.loop.receipt ? arguments.loop.receipt : "";
  for (const std::string &path : {save, json, csv, receipt, tracePath(arguments)})
    must(folders_.prepareFile(path));
  if (epochFile.find('{') == std::string::npos || epochFile.find('{') >= epochFile.rfind('/') + 1)
    must(folders_.prepareFile(epochFile));
  for (const std::string &path : {folder, checkpoints, arguments.tensorboard})
    if (!path.empty())
      must(folders_.prepareFolder(path));
  if (!folder.empty())
    nameFilesOf(folder);
}

void Outputs::nameFilesOf(const std::string &path) {
  folder = path;
  if (checkpoints.empty())
    checkpoints = folder + "/checkpoints";
  must(folders_.prepareFolder(checkpoints));
  if (save.empty())
    save = folder + "/weights.safetensors";
  if (json.empty()) {
    json = folder + "/history.json";
    csv = folder + "/history.csv";
  }
  for (const std::string &file : {save, json, csv})
    must(folders_.prepareFile(file));
}

void Outputs::begin(const Run &run) {
  if (!writes_)
    return;
  for (const std::string &path : {save, epochFile})
    if (!path.empty())
      check(mtrun_check_save(run.plan.get(), path.c_str()));
  if (!folder.empty() || !save.empty() || !checkpoints.empty() || !epochFile.empty())
    return;
  std::string created;
  must(folders_.makeFresh(stamped(mtrun_plan_model(run.plan.get())), created));
  nameFilesOf(created);
}

} // namespace mtrun_tool
