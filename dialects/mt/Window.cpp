// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Window.h"
#include "dialects/mt/Elementwise.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

LogicalResult mlir::mt::verifyImages(std::optional<Location> location, RankedTensorType type) {
  if (type.getRank() != 4 || !isSplit(type) || !isa<FloatType>(type.getElementType()))
    return emitOptionalError(location, "expected images tensor<?xHxWxCxf32>, found ", type);
  for (int64_t size : type.getShape().drop_front())
    if (size < 1 || size >= maxExtent)
      return emitOptionalError(location, "expected images with sizes from 1 to ", maxExtent - 1, ", found ", type);
  return success();
}

static LogicalResult verifyList(std::optional<Location> location, StringRef what, ArrayRef<int64_t> list, size_t count,
                                int64_t least) {
  if (list.size() != count)
    return emitOptionalError(location, "expected ", count, " numbers as ", what, ", found ", list.size());
  for (int64_t number : list)
    if (number < least || number >= maxExtent)
      return emitOptionalError(location, "expected ", what, " from ", least, " to ", maxExtent - 1, ", found ", number);
  return success();
}

static FailureOr<Window> windowOver(std::optional<Location> location, StringRef axis, Window window) {
  int64_t padded = window.inputs + window.low + window.high;
  if (std::max(window.low, window.high) >= window.reach())
    return emitOptionalError(location, "expected padding of less than the window's ", window.reach(), " ", axis,
                             ", found ", window.low, " and ", window.high);
  if (padded < window.reach())
    return emitOptionalError(location, "expected ", window.reach(), " ", axis, " or more with the padding, found ",
                             padded);
  window.outputs = (padded - window.reach()) / window.stride + 1;
  return window;
}

FailureOr<std::pair<Window, Window>> mlir::mt::windowsOver(std::optional<Location> location, RankedTensorType images,
                                                           const WindowAttributes &attributes) {
  auto [taps, strides, padding, dilation] = attributes;
  if (failed(verifyImages(location, images)) || failed(verifyList(location, "window", taps, 2, 1)) ||
      failed(verifyList(location, "strides", strides, 2, 1)) ||
      failed(verifyList(location, "padding", padding, 4, 0)) ||
      failed(verifyList(location, "dilation", dilation, 2, 1)))
    return failure();
  FailureOr<Window> windows[2];
  for (int i = 0; i < 2; ++i) {
    windows[i] =
        windowOver(location, i == 0 ? "rows" : "columns",
                   {images.getDimSize(1 + i), 0, taps[i], strides[i], dilation[i], padding[2 * i], padding[2 * i + 1]});
    if (failed(windows[i]))
      return failure();
  }
  return std::pair(*windows[0], *windows[1]);
}
