// SPDX-License-Identifier: Apache-2.0
//
// A `.keras` file: a zip archive of metadata.json, config.json and model.weights.h5.
//
// Archives come from anywhere. A child process with limits of its own opens them (ArchiveReader.h) and sends what it
// finds through a pipe, in a format that is trivial to check; a fault of a library's parser ends the child and is an
// error here.
#ifndef FRONTEND_KERAS_ARCHIVE_H
#define FRONTEND_KERAS_ARCHIVE_H

#include "frontend/NamedTensor.h"

#include <map>
#include <string>

namespace mtc::keras {

struct Archive {
  std::string metadata, config;               // JSON
  std::string comment;                        // of the zip archive: mtrun's, JSON too, or another program's
  std::map<std::string, NamedTensor> weights; // by path in the HDF5 file: "layers/dense/vars/0"; f32 or i64
};

// Empty on success, else what is wrong with the file, without its name. Forks: the caller's other threads are not
// disturbed.
std::string readArchive(const std::string &path, Archive &archive);

} // namespace mtc::keras

#endif
