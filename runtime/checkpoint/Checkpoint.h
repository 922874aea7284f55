// SPDX-License-Identifier: Apache-2.0
//
// Writes one checkpoint, and reads it back with every byte verified.
#pragma once

#include "runtime/checkpoint/Disk.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/support/safetensors.h"

#include <functional>
#include <string>
#include <vector>

namespace mtrun {

// Writes the checkpoint step-N, N = manifest.state.step, with `tensors` into the open folder `folder`; `path` is its
// path for messages. Fills in the manifest's fields about files. The files are written to a folder with a temporary
// name, which readers ignore; files and folder are synced, a rename gives the folder its name, and the parent folder is
// synced. An existing checkpoint of the name is replaced. After MT_IO, the existing checkpoint is unchanged. `mayName`,
// if there is one, is called immediately before the rename, and its failure leaves everything as it was.
Status writeCheckpoint(Disk &disk, int folder, const std::string &path, Manifest manifest,
                       std::vector<SafeTensor> tensors, const std::function<Status()> &mayName = {});

// Where the variables are in variables.safetensors, which several processes write together.
struct VariablesFile {
  explicit VariablesFile(std::vector<SafeTensor> tensors);

  std::vector<SafeTensor> tensors; // in the order of the file
  std::string header;
  std::vector<uint64_t> offsets; // of each tensor
  uint64_t size = 0;
};

// Begin and end a save of several processes, in the folder and with the steps of writeCheckpoint(). The first call
// makes the temporary folder with a file of the right size, and returns its path in `place`. The tensors without bytes
// are then written by other calls or processes (writePieces()). The second call writes the other tensors, reads the
// former back, has `check` look at each, and names the checkpoint. abandonCheckpoint() ends a save that has begun.
Status beginCheckpoint(Disk &disk, int folder, const std::string &path, int64_t step, const VariablesFile &file,
                       std::string &place);
using CheckTensor = std::function<Status(size_t tensor, std::span<const std::byte> bytes)>;
Status endCheckpoint(Disk &disk, int folder, const std::string &path, Manifest manifest, const VariablesFile &file,
                     const CheckTensor &check, const std::function<Status()> &mayName);
void abandonCheckpoint(Disk &disk, int folder, int64_t step);
// Writes pieces of the file at `place`, which another process has made. MT_IO: also if it is not there, or no such
// file.
Status writePieces(Disk &disk, const std::string &place, uint64_t size, std::span<const Disk::Piece> pieces);

struct Checkpoint {
  std::string path;
  Manifest manifest;
  std::vector<SafeTensor> tensors; // stored in `file`
  std::vector<std::byte> file;
};

Status readManifest(const std::string &path, Manifest &manifest);
// Verifies the manifest, the size of the file, its header and every tensor. MT_CORRUPT names the file or the tensor
// that differs. MT_IO.
Status readCheckpoint(const std::string &path, Checkpoint &checkpoint);
// Likewise for the bytes of the two files, which another process has sent.
Status parseCheckpoint(const std::string &path, const std::string &manifest, std::vector<std::byte> file,
                       Checkpoint &checkpoint);

// Returns a name such as "step-000000000100".
std::string checkpointName(int64_t step);
// Returns the steps of all checkpoints in a folder, newest first, without verification; empty if the folder does not
// exist.
std::vector<int64_t> checkpointSteps(const std::string &folder);

// Finds the newest checkpoint that verifies; false if there is none. `skipped` receives a line with the reason for each
// newer checkpoint.
bool findNewest(const std::string &folder, Checkpoint &checkpoint, std::vector<std::string> &skipped);

// Additional bytes of a checkpoint: the header, the manifest, and partly filled blocks of the file system.
inline constexpr uint64_t checkpointOverhead = 1 << 20;

// Prefixes of temporary folders: for a save, and for a checkpoint that is being removed.
inline constexpr const char *temporaryPrefix = ".tmp-", *removedPrefix = ".tmp-removed-";

} // namespace mtrun
