// SPDX-License-Identifier: Apache-2.0
//
// What convolutions, pools and their gradients share: how images and kernels are stored, and the padding of windows.
#ifndef FRONTEND_LOGICAL_WINDOWS_H
#define FRONTEND_LOGICAL_WINDOWS_H

#include "frontend/logical/Compute.h"

namespace mtc::logical {

// The order of [b, C, spatial...] in which images are stored, and the way back.
Value channelsLast(const Value &images);
inline Value channelsFirst(const Value &images) { return moveAxis(images, images.rank() - 1, 1); }
// Images and windows with two spatial axes: where the file has one axis, another one of size 1 comes first.
Value asImages(const Value &value);
Value fromImages(const Value &value, size_t rank);
Windows withTwoAxes(Windows windows);
// The images with the padding that the ops of `mt` do not take, which `windows` loses.
Value padded(Ops &ops, const Value &images, Windows &windows, double fill);
// As many numbers for each spatial axis; and the samples as the first axis and no other.
void checkWindows(const Value &images, const Windows &windows);
void checkImages(const Value &images, const Windows &windows);
void checkKernel(const Value &images, const Value &kernel);
llvm::SmallVector<int64_t> paddingOf(const Windows &windows);
mlir::RankedTensorType imagesType(Ops &ops, int64_t height, int64_t width, int64_t channels);
// [F, C, H, W] as [H, W, C, F].
mlir::Value wholeKernel(Ops &ops, const Value &kernel);
// Sums of windows with strides of 1 over values with zeros between them, as the gradient of a sum of windows is written
// out. Null: there are none between them, or all windows read padding alone.
Value averageGradient(Ops &ops, const Value &images, const Windows &windows);

// ---- What the ops of `mt` do not take (WindowTaps.cpp)

// Whether images are [b, C, spatial...] of one or two spatial axes, which the ops of `mt` take.
bool hasKernels(const Value &images, const Windows &windows);
// Any first axis, and any number of spatial axes: a slice of the images for each place in a window.
Value convolutionByTaps(Ops &ops, const Value &images, const Value &kernel, const Windows &windows);
Value transposedByTaps(Ops &ops, const Value &images, const Value &kernel, const Windows &windows,
                       llvm::ArrayRef<int64_t> sizes);
Value poolByTaps(Ops &ops, mlir::mt::Reduction kind, const Value &images, const Windows &windows);

// Images [k*b, C, spatial...] of one or two spatial axes as [b, C, rows, ...], one below the other.
struct Stacked {
  Value images;
  Windows windows;
  int64_t many = 1, each = 0, count = 0; // images of a sample; windows that begin in one, and those that also end in it
  bool batchInside = false;              // the first axis is k times the batch, not the batch times k
};
// None: the images are others.
std::optional<Stacked> stackedImages(Ops &ops, const Value &images, const Windows &windows, double fill);
// [b, F, windows...] of stacked images as [k*b, F, windows...].
Value unstacked(Ops &ops, const Value &made, const Stacked &stacked);

} // namespace mtc::logical

#endif
