// SPDX-License-Identifier: Apache-2.0
//
// Writing one checkpoint, and reading it back with every byte verified.
#pragma once

#include "runtime/abi/safetensors.h"
#include "runtime/checkpoint/Disk.h"
#include "runtime/checkpoint/Manifest.h"

#include <string>
#include <vector>

namespace mtrun {

// Writes FOLDER/step-N, N = manifest.state.step, from `tensors`; fills in the manifest's facts about files. Everything
// goes into a folder with a name that no reader looks at; files and folder are synced; one rename makes it a
// checkpoint, and the parent is synced. A checkpoint that has the name is exchanged for the new one. MT_IO: what was
// there before is untouched.
Status writeCheckpoint(Disk &disk, const std::string &folder, Manifest manifest, std::vector<SafeTensor> tensors);

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

// What a temporary folder's name begins with.
inline constexpr const char *kTemporary = ".tmp-";

} // namespace mtrun
