// SPDX-License-Identifier: Apache-2.0
//
// Geometry of convolutions and pools, in elements. The op has passed its verifier.
#ifndef DIALECTS_MT_WINDOW_H
#define DIALECTS_MT_WINDOW_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"

namespace mlir::mt {

// One axis of a sliding window.
struct Window {
  int64_t inputs = 1, outputs = 1, taps = 1, stride = 1, dilation = 1, low = 0, high = 0;

  // Number of input elements from the first to the last tap.
  int64_t reach() const { return (taps - 1) * dilation + 1; }
  // Input index of an output at a tap. An index outside of 0 .. inputs - 1 is in the padding.
  int64_t at(int64_t output, int64_t tap) const { return output * stride + tap * dilation - low; }
  bool holds(int64_t input) const { return input >= 0 && input < inputs; }
  AffineExpr at(AffineExpr output, AffineExpr tap) const { return output * stride + tap * dilation - low; }
};

// Attributes of an op with windows; `taps` are the window sizes [along H, along W].
struct WindowAttributes {
  ArrayRef<int64_t> taps, strides, padding, dilation;
};

// Geometry of both axes of windows over images. Fails, with an error at `location`, if there is no output.
FailureOr<std::pair<Window, Window>> windowsOver(std::optional<Location> location, RankedTensorType images,
                                                 const WindowAttributes &attributes);
// Checks that the type is f32 [?, H, W, C].
LogicalResult verifyImages(std::optional<Location> location, RankedTensorType type);

struct Pooling {
  Window rows, columns;
  int64_t channels = 1;
};

// Geometry of a convolution of x [?, H, W, C] and w [KH, KW, C / groups, F].
struct Convolution {
  Window rows, columns;
  int64_t channels = 1, filters = 1, groups = 1; // C, F, g

  int64_t groupChannels() const { return channels / groups; }
  int64_t groupFilters() const { return filters / groups; }
  // First channel that a filter reads.
  int64_t firstChannel(int64_t filter) const { return filter / groupFilters() * groupChannels(); }
  // FLOPs of one sample. An FMA counts two, and taps in the padding count.
  int64_t flops() const {
    return 2 * rows.outputs * columns.outputs * filters * rows.taps * columns.taps * groupChannels();
  }
};

} // namespace mlir::mt

#endif
