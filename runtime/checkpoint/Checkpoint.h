// SPDX-License-Identifier: Apache-2.0
//
// Writing one checkpoint, and reading it back with every byte verified.
#pragma once

#include "runtime/checkpoint/Disk.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/support/safetensors.h"

#include <string>
#include <vector>

namespace mtrun {

// Writes step-N, N = manifest.state.step, from `tensors` into the folder that is open as `folder`; `path` is for
// messages. Fills in the manifest's facts about files. Everything
// goes into a folder with a name that no reader looks at; files and folder are synced; one rename makes it a
// checkpoint, and the parent is synced. A checkpoint that has the name is exchanged for the new one. MT_IO: what was
// there before is untouched.
Status writeCheckpoint(Disk &disk, int folder, const std::string &path, Manifest manifest,
                       std::vector<SafeTensor> tensors);

struct Checkpoint {
  std::string path;
  Manifest manifest;
  std::vector<SafeTensor> tensors; // in `file`
  std::vector<std::byte> file;
};

Status readManifest(const std::string &path, Manifest &manifest);
// Verifies the manifest, the size of the file, its header and every tensor. MT_CORRUPT names the file, or the tensor,
// that is not what was written. MT_IO.
Status readCheckpoint(const std::string &path, Checkpoint &checkpoint);

// "step-000000000100".
std::string checkpointName(int64_t step);
// The steps of the checkpoints in a folder, whether or not they verify, newest first; none if there is no folder.
std::vector<int64_t> checkpointSteps(const std::string &folder);

// The newest that verifies; false: there is none. `skipped`: a line for each newer one, with the reason.
bool findNewest(const std::string &folder, Checkpoint &checkpoint, std::vector<std::string> &skipped);

// What the names of temporary folders begin with: of a save, and of a checkpoint that is being removed.
inline constexpr const char *temporaryPrefix = ".tmp-", *removedPrefix = ".tmp-removed-";

} // namespace mtrun
