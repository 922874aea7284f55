// SPDX-License-Identifier: Apache-2.0
//
// What constants and the number of samples decide: positions repeated for each sample, and the masks that exporters
// compute from them with ops that `mt` has not. A node of such operands is computed here for batches of 2 and of 3
// samples. Where its result repeats along one axis, of 2 and of 3, that is the batch, and what repeats is a constant.
//
// That two batches speak for all is a matter of which nodes are computed. Operands that are the same for every sample
// may go through any op that the importer takes for any batch. Those that depend on the sample's place, or are the
// number of samples, go through ops that move or add them alone: a comparison could tell a fourth sample from three.
#ifndef FRONTEND_ONNX_FORBATCHES_H
#define FRONTEND_ONNX_FORBATCHES_H

#include "frontend/onnx/OpTable.h"

#include <array>

namespace mtc::onnx {

struct ForBatches {
  static constexpr std::array<int64_t, 2> batches = {2, 3};

  // Either what each sample has, with the size 1 on the axis `batch`, or the value for each of `batches`.
  std::vector<Known> known;
  size_t batch = 0;

  bool repeats() const { return known.size() == 1; }
  int64_t count() const;
  Known at(size_t index) const; // for a batch of batches[index]
  // For any batch; refused where it does not repeat.
  logical::Value value(logical::Ops &ops) const;
};

// What is first along an axis, which stays with the size 1.
Known firstOf(const Known &known, size_t axis);

// Gives results of the node that are not known what they are for `batches`, where all its operands are known for those
// and the results have at most `most` elements together. One that repeats takes the place of a result that the model
// would compute. Where the node was refused, `refused`, results are made of what is known; false: not all could be.
bool computeForBatches(Call &call, BuildOp build, bool refused, int64_t most);

} // namespace mtc::onnx

#endif
