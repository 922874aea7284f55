// SPDX-License-Identifier: Apache-2.0
//
// Tensors of an ONNX file as constants that are known.
#ifndef FRONTEND_ONNX_KNOWNTENSOR_H
#define FRONTEND_ONNX_KNOWNTENSOR_H

#include "frontend/logical/Known.h"
#include "frontend/onnx/File.h"

namespace mtc::onnx {

using logical::commonSizes;
using logical::computed;
using logical::elementOf;
using logical::Indices;
using logical::Known;
using logical::Refused;
using logical::Size;

Known::Type knownTypeOf(ElementType type);
// Bits of integers, as Known::width.
int widthOf(ElementType type);
Known knownOf(const Tensor &tensor);

} // namespace mtc::onnx

#endif
