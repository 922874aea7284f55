// SPDX-License-Identifier: Apache-2.0
//
// What convolutions, pools and their gradients share: how images and kernels are stored, and the padding of windows.
#ifndef FRONTEND_LOGICAL_WINDOWS_H
#define FRONTEND_LOGICAL_WINDOWS_H

#include "frontend/logical/Compute.h"

namespace mtc::logical {

// The order of [b, C, spatial...] in which images are stored, and the way back.
llvm::SmallVector<int64_t> channelsLast(size_t rank);
llvm::SmallVector<int64_t> channelsFirst(size_t rank);
// Of two spatial axes, the first of size 1 where there is one in the file.
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

} // namespace mtc::logical

#endif
