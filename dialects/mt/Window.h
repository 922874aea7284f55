// SPDX-License-Identifier: Apache-2.0
//
// The geometry of convolutions and pools: sizes in elements, from ops that verify.
#ifndef DIALECTS_MT_WINDOW_H
#define DIALECTS_MT_WINDOW_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"

namespace mlir::mt {

// One axis of a sliding window.
struct Window {
  int64_t inputs = 1, outputs = 1, taps = 1, stride = 1, dilation = 1, low = 0, high = 0;

  // Input elements from the first tap to the last.
  int64_t reach() const { return (taps - 1) * dilation + 1; }
  // The input element of an output at a tap; outside 0 .. inputs - 1 it is in the padding.
  int64_t at(int64_t output, int64_t tap) const { return output * stride + tap * dilation - low; }
  bool holds(int64_t input) const { return input >= 0 && input < inputs; }
  AffineExpr at(AffineExpr output, AffineExpr tap) const { return output * stride + tap * dilation - low; }
};

// The attributes of an op with windows, and the sizes of its windows [along H, along W].
struct WindowAttributes {
  ArrayRef<int64_t> taps, strides, padding, dilation;
};

// Both axes of a window over images of a type. Fails, with an error at `location`, where there is no output.
FailureOr<std::pair<Window, Window>> windowsOver(std::optional<Location> location, RankedTensorType images,
                                                 const WindowAttributes &attributes);
// Succeeds for f32 [?, H, W, C].
LogicalResult verifyImages(std::optional<Location> location, RankedTensorType type);

struct Pooling {
  Window rows, columns;
  int64_t channels = 1;
};

// Of x [?, H, W, C] and w [KH, KW, C / groups, F].
struct Convolution {
  Window rows, columns;
  int64_t channels = 1, filters = 1, groups = 1; // C, F, g

  int64_t groupChannels() const { return channels / groups; }
  int64_t groupFilters() const { return filters / groups; }
  // The first channel that a filter reads.
  int64_t firstChannel(int64_t filter) const { return filter / groupFilters() * groupChannels(); }
  // Of one sample, an FMA counting two; taps in the padding count.
  int64_t flops() const {
    return 2 * rows.outputs * columns.outputs * filters * rows.taps * columns.taps * groupChannels();
  }
};

} // namespace mlir::mt

#endif
