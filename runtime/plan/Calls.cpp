// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Calls.h"

#include "runtime/plan/Check.h"

#include <initializer_list>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

constexpr uint64_t maxSize = uint64_t{1} << 31; // limit of an axis, because libraries use int32

// Multiplies the sizes. Returns false if a size is 0 or too large, or if the product is too large.
bool product(std::initializer_list<uint64_t> sizes, uint64_t &result) {
  result = 1;
  for (uint64_t size : sizes)
    if (size == 0 || size >= maxSize || !multiplyAdd(result, size, 0, result) || result > maxCount)
      return false;
  return true;
}

// Returns true if all windows lie inside the padded axis. Nothing overflows, because all fields have 32 bits.
bool fits(const fb::CallAxis *axis) {
  if (!axis || axis->taps() == 0 || axis->stride() == 0 || axis->dilation() == 0 || axis->outputs() == 0)
    return false;
  for (uint64_t size :
       {axis->inputs(), axis->outputs(), axis->taps(), axis->stride(), axis->dilation(), axis->low(), axis->high()})
    if (size >= maxSize)
      return false;
  uint64_t reach = (uint64_t{axis->taps()} - 1) * axis->dilation() + 1;
  uint64_t padded = uint64_t{axis->inputs()} + axis->low() + axis->high();
  return axis->low() < reach && axis->high() < reach && padded >= reach &&
         (padded - reach) / axis->stride() + 1 == axis->outputs();
}

bool productSizes(const fb::LibraryCall &call, CallSizes &sizes) {
  uint64_t matrix;
  if (!product({call.lines(), call.depth()}, sizes.left) || !product({call.lines(), call.columns()}, sizes.right) ||
      !product({call.depth(), call.columns()}, matrix))
    return false;
  bool tree = isTree(call);
  sizes.result = tree ? matrix : sizes.right;
  sizes.right = tree ? sizes.right : matrix;
  sizes.rightRows = tree;
  sizes.resultRows = !tree;
  return true;
}

bool convolutionSizes(const fb::LibraryCall &call, CallSizes &sizes) {
  const fb::CallAxis *down = call.down(), *across = call.across();
  uint64_t images, outputs, kernel;
  if (!fits(down) || !fits(across) || call.groups() == 0 || call.channels() % call.groups() ||
      call.filters() % call.groups() || !product({down->inputs(), across->inputs(), call.channels()}, images) ||
      !product({down->outputs(), across->outputs(), call.filters()}, outputs) ||
      !product({down->taps(), across->taps(), call.channels() / call.groups(), call.filters()}, kernel))
    return false;
  switch (call.kind()) {
  case fb::CallKind::Convolution:
    sizes = {images, kernel, outputs, false, true};
    break;
  case fb::CallKind::ConvolutionInput:
    sizes = {outputs, kernel, images, false, true};
    break;
  default:
    sizes = {images, outputs, kernel, true, false};
  }
  return true;
}

} // namespace

Status callSizes(const fb::LibraryCall &call, const std::string &place, CallSizes &sizes) {
  if (call.kind() < fb::CallKind::MIN || call.kind() > fb::CallKind::MAX || call.math() < fb::CallMath::MIN ||
      call.math() > fb::CallMath::MAX || call.epilogue() < fb::CallEpilogue::MIN ||
      call.epilogue() > fb::CallEpilogue::MAX)
    return corrupt(place + ": expected a kind of call, arithmetic and epilogue, found an unknown value");
  bool hasBias = static_cast<int>(call.epilogue()) & 2;
  if (hasBias != (call.bias() >= 0) || (isTree(call) && call.epilogue() != fb::CallEpilogue::None))
    return corrupt(place + ": expected a bias where the epilogue has one, and no epilogue of a sum, found a mismatch");
  if (!(isConvolution(call) ? convolutionSizes(call, sizes) : productSizes(call, sizes)))
    return corrupt(place + ": expected sizes that fit each other, of at most 2^40 elements, found a mismatch");
  return {};
}

Status checkCall(const fb::LibraryCall &call, const fb::Program &program, const fb::Segment &segment,
                 const std::string &place) {
  CallSizes sizes;
  if (Status status = callSizes(call, place, sizes); !status.ok())
    return status;
  uint64_t columns = isConvolution(call) ? call.filters() : call.columns();
  auto check = [&](uint64_t argument, uint64_t elements, bool rows, const char *what) -> Status {
    if (argument >= count(segment.buffers()))
      return differs(place, std::string(what) + " below " + std::to_string(count(segment.buffers())), argument);
    const fb::Buffer &buffer = *program.buffers()->Get(segment.buffers()->Get(static_cast<uint32_t>(argument)));
    uint64_t bytes = rows ? buffer.row_bytes() : buffer.fixed_bytes();
    if (bytes != elements * sizeof(float) || (rows ? buffer.fixed_bytes() : buffer.row_bytes()) != 0 ||
        buffer.dtype() != fb::DType::F32)
      return differs(place,
                     std::string(what) + " of " + std::to_string(elements * sizeof(float)) + " bytes" +
                         (rows ? " per row" : ""),
                     bytes);
    return {};
  };
  if (Status status = check(call.left(), sizes.left, true, "a left operand"); !status.ok())
    return status;
  if (Status status = check(call.right(), sizes.right, sizes.rightRows, "a right operand"); !status.ok())
    return status;
  if (Status status = check(call.result(), sizes.result, sizes.resultRows, "a result"); !status.ok())
    return status;
  return call.bias() < 0 ? Status() : check(static_cast<uint64_t>(call.bias()), columns, false, "a bias");
}

} // namespace mtrun
