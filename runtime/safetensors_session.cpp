// SPDX-License-Identifier: Apache-2.0
//
// mtrun_save and mtrun_load: a session's variables as a .safetensors file.
#include "runtime/abi/safetensors.h"
#include "runtime/api/Handles.h"
#include "runtime/checkpoint/Resume.h"
#include "runtime/loop/Loop.h"

#include <filesystem>

using namespace mtrun;

// Copies of all variables, in the plan's order.
static Status snapshot(mtrun_session *session, std::vector<SafeTensor> &tensors,
                       std::vector<std::vector<std::byte>> &bytes) {
  const mtrun_plan *plan = mtrun_session_plan(session);
  for (int32_t i = 0; i < mtrun_plan_variable_count(plan); ++i) {
    mtrun_tensor_info info;
    if (Status s = adopt(mtrun_plan_variable(plan, i, &info)); !s.ok())
      return s;
    size_t size = mt_dtype_size(info.dtype);
    for (int32_t d = 0; d < info.rank; ++d)
      size *= static_cast<size_t>(info.shape[d]);
    bytes.emplace_back(size);
    if (Status s = adopt(mtrun_get_variable(session, info.name, bytes.back().data(), size)); !s.ok())
      return s;
    tensors.push_back({info.name, info.dtype, std::vector<int64_t>(info.shape, info.shape + info.rank), bytes.back()});
  }
  return {};
}

static std::string describe(const SafeTensor &tensor) {
  std::string text = std::string(mt_dtype_name(tensor.dtype)) + " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

static const SafeTensor *find(const std::vector<SafeTensor> &tensors, const std::string &name) {
  for (const SafeTensor &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

// Every difference between what the plan wants and what the file has, a line each.
static Status compare(const std::string &path, const std::vector<SafeTensor> &wanted,
                      const std::vector<SafeTensor> &found) {
  std::string problems;
  auto add = [&](const std::string &line) { problems += (problems.empty() ? "" : "\n") + path + ": " + line; };
  for (const SafeTensor &want : wanted) {
    const SafeTensor *have = find(found, want.name);
    if (!have)
      add("expected variable \"" + want.name + "\": " + describe(want) + ", found none");
    else if (have->dtype != want.dtype || have->shape != want.shape)
      add("variable \"" + want.name + "\": expected " + describe(want) + ", found " + describe(*have));
  }
  for (const SafeTensor &have : found)
    if (!find(wanted, have.name))
      add("the plan has no variable \"" + have.name + "\": " + describe(have));
  return problems.empty() ? Status() : Status(MT_INVALID, problems);
}

Status mtrun::setVariables(mtrun_session *session, const std::string &path, const std::vector<SafeTensor> &found) {
  std::vector<SafeTensor> wanted;
  std::vector<std::vector<std::byte>> current;
  if (Status s = snapshot(session, wanted, current); !s.ok())
    return s;
  if (Status s = compare(path, wanted, found); !s.ok())
    return s;
  for (const SafeTensor &tensor : found)
    if (Status s = adopt(mtrun_set_variable(session, tensor.name.c_str(), tensor.bytes.data(), tensor.bytes.size()));
        !s.ok())
      return s;
  return {};
}

// Of a checkpoint, or of the newest in a folder of them. One that does not verify is an error: an older one is another
// training, and the caller's choice.
static Status loadCheckpoint(mtrun_session *session, const std::string &folder) {
  std::string path = folder;
  std::error_code error;
  if (!std::filesystem::exists(path + "/" + kManifestFile, error)) {
    std::vector<int64_t> steps = checkpointSteps(folder);
    if (steps.empty())
      return {MT_INVALID,
              "expected a file of variables, a checkpoint or a folder of checkpoints, found none of them in " + folder};
    path += "/" + checkpointName(steps.front());
  }
  Checkpoint checkpoint;
  if (Status s = readCheckpoint(path, checkpoint); !s.ok())
    return s;
  return setVariables(session, path + "/" + kVariablesFile, checkpoint.tensors);
}

static Status load(mtrun_session *session, const char *path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return loadCheckpoint(session, path);
  std::vector<std::byte> file;
  if (Status s = readWholeFile(path, file); !s.ok())
    return s;
  std::vector<SafeTensor> found;
  if (Status s = parseSafetensors(file, path, found); !s.ok())
    return s;
  return setVariables(session, path, found);
}

mt_status *mtrun_save(mtrun_session *session, const char *path) {
  return guarded([&]() -> Status {
    if (!session || !path)
      return {MT_INVALID, "save: expected a session and a path, found NULL"};
    std::vector<SafeTensor> tensors;
    std::vector<std::vector<std::byte>> bytes;
    if (Status s = snapshot(session, tensors, bytes); !s.ok())
      return s;
    return writeSafetensors(path, std::move(tensors));
  });
}

mt_status *mtrun_load(mtrun_session *session, const char *path) {
  return guarded([&]() -> Status {
    if (!session || !path)
      return {MT_INVALID, "load: expected a session and a path, found NULL"};
    return load(session, path);
  });
}
