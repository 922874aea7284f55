// SPDX-License-Identifier: Apache-2.0
//
// The HDF5 file of a model's weights, as Keras lays it out, with room for the variables' values.
#ifndef FRONTEND_KERAS_WEIGHTSFILE_H
#define FRONTEND_KERAS_WEIGHTSFILE_H

#include "frontend/ExportArchive.h"
#include "frontend/NamedTensor.h"

namespace mtc::keras {

// A data set: of a variable's values, or of bytes that stay as they are.
struct StoredTensor {
  std::string path; // "layers/dense/vars/0"
  bool isVariable;
  NamedTensor tensor; // a variable's has no bytes
};

// Empty on success, else what went wrong. The same tensors give the same pieces: Bytes and Variable. Takes memory for
// the metadata alone.
std::string layOutWeights(const std::vector<StoredTensor> &tensors, std::vector<ExportPiece> &pieces);

} // namespace mtc::keras

#endif
