// SPDX-License-Identifier: Apache-2.0
//
// A `.keras` file: a zip archive of metadata.json, config.json and model.weights.h5.
//
// Archives may come from untrusted sources. A child process with limits of its own opens them (ArchiveReader.h) and
// sends their contents through a pipe, in a format that is trivial to validate. A fault in a library's parser ends only
// the child, and is reported as an error.
#ifndef FRONTEND_KERAS_ARCHIVE_H
#define FRONTEND_KERAS_ARCHIVE_H

#include "frontend/NamedTensor.h"

#include <map>
#include <string>

namespace mtc::keras {

struct Archive {
  std::string metadata, config;               // JSON
  std::string comment;                        // comment of the zip archive: JSON if MTC wrote the archive
  std::map<std::string, NamedTensor> weights; // by path in the HDF5 file: "layers/dense/vars/0"; f32 or i64
};

// Returns an empty text on success, else the error without the file's name. Forks, and is safe to call while other
// threads run.
std::string readArchive(const std::string &path, Archive &archive);

} // namespace mtc::keras

#endif
