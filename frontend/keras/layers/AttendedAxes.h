// SPDX-License-Identifier: Apache-2.0
//
// Attention over some of a sample's axes.
#ifndef FRONTEND_KERAS_LAYERS_ATTENDEDAXES_H
#define FRONTEND_KERAS_LAYERS_ATTENDEDAXES_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

// Which axes of a sample are attended over, as one: [?, free, attended, channels]. Scores are the free axes' each by
// itself.
struct AttendedAxes {
  mlir::SmallVector<int64_t> axes;          // 1 and up, in order
  mlir::SmallVector<int64_t> freeShape;     // of the other axes but the last
  mlir::SmallVector<int64_t> attendedShape; // of the query
  int64_t free = 1;

  // The batch, the free axes, the attended ones, and `behind` axes more.
  mlir::SmallVector<int64_t> order(int64_t rank, int64_t behind) const;
  // x as [?, F, T, C]; [?, T, C] where F is 1.
  mlir::Value arrange(LayerBuilder &layer, mlir::Value x) const;
  // [?, F, T, O], or [?, T, O], with the query's axes again, and those of the output.
  mlir::Value restore(LayerBuilder &layer, mlir::Value x, mlir::ArrayRef<int64_t> output) const;
};

// The attention_axes option for a query and a value; none after an error.
std::optional<AttendedAxes> readAttendedAxes(LayerBuilder &layer, mlir::Value query, mlir::Value value);

} // namespace mtc::keras

#endif
