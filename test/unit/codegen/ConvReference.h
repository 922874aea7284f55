// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients to the bit: the chain of each element that dialects/mt/MtSpatial.td names, or
// Winograd's algorithm where compiler/codegen/cpu/Winograd.h says so.
#ifndef TEST_UNIT_CODEGEN_CONVREFERENCE_H
#define TEST_UNIT_CODEGEN_CONVREFERENCE_H

#include <cstdint>

namespace codegentest {

struct ConvolutionShape {
  int64_t h, w, c, kh, kw, f;
  int64_t stride[2] = {1, 1}, padding[4] = {0, 0, 0, 0}, dilation[2] = {1, 1}, groups = 1;

  int64_t oh() const { return (h + padding[0] + padding[1] - (kh - 1) * dilation[0] - 1) / stride[0] + 1; }
  int64_t ow() const { return (w + padding[2] + padding[3] - (kw - 1) * dilation[1] - 1) / stride[1] + 1; }
  int64_t images() const { return h * w * c; }
  int64_t outputs() const { return oh() * ow() * f; }
  int64_t kernel() const { return kh * kw * c / groups * f; }
};

// One sample: y, or dx, which are 0 before.
void forward(const ConvolutionShape &s, const float *x, const float *w, float *y);
void inputGradient(const ConvolutionShape &s, const float *dy, const float *w, float *dx);
// The sum over the samples of a shard: dw, which is 0 before.
void kernelGradient(const ConvolutionShape &s, int64_t samples, const float *x, const float *dy, float *dw);

} // namespace codegentest

#endif
