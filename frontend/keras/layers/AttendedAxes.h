// SPDX-License-Identifier: Apache-2.0
//
// Attention over some axes of a sample.
#ifndef FRONTEND_KERAS_LAYERS_ATTENDEDAXES_H
#define FRONTEND_KERAS_LAYERS_ATTENDEDAXES_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

// The axes of a sample over which attention is computed, joined to one: [?, free, attended, channels]. Each index of
// the free axes has scores of its own.
struct AttendedAxes {
  mlir::SmallVector<int64_t> axes;          // 1 and higher, sorted
  mlir::SmallVector<int64_t> freeShape;     // of the other axes, except the last
  mlir::SmallVector<int64_t> attendedShape; // of the query
  int64_t free = 1;

  // Order of axes: the batch axis, the free axes, the attended axes, then `more` more axes.
  mlir::SmallVector<int64_t> order(int64_t rank, int64_t more) const;
  // x as [?, F, T, C], or [?, T, C] if F is 1.
  mlir::Value arrange(LayerBuilder &layer, mlir::Value x) const;
  // Restores the query's axes of [?, F, T, O] or [?, T, O], followed by the axes of the output.
  mlir::Value restore(LayerBuilder &layer, mlir::Value x, mlir::ArrayRef<int64_t> output) const;
};

// The option attention_axes for a query and a value; nullopt after an error.
std::optional<AttendedAxes> readAttendedAxes(LayerBuilder &layer, mlir::Value query, mlir::Value value);

} // namespace mtc::keras

#endif
