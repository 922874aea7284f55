// SPDX-License-Identifier: Apache-2.0
//
// The HDF5 file of a model's weights in Keras' layout, with gaps for the values of variables.
#ifndef FRONTEND_KERAS_WEIGHTSFILE_H
#define FRONTEND_KERAS_WEIGHTSFILE_H

#include "frontend/ExportArchive.h"
#include "frontend/NamedTensor.h"

namespace mtc::keras {

// A data set: values of a variable, or constant bytes.
struct StoredTensor {
  std::string path; // "layers/dense/vars/0"
  bool isVariable;
  NamedTensor tensor; // without bytes for a variable
};

// Returns an empty text, or the error. The pieces (Bytes and Variable) depend only on the tensors. Memory is allocated
// for the metadata alone.
std::string layOutWeights(const std::vector<StoredTensor> &tensors, std::vector<ExportPiece> &pieces);

} // namespace mtc::keras

#endif
