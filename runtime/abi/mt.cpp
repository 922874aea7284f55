// SPDX-License-Identifier: Apache-2.0
//
// The element types of mt.h.
#include "runtime/abi/mt.h"

size_t mt_dtype_size(mt_dtype dtype) {
  switch (dtype) {
  case MT_F32:
  case MT_I32:
    return 4;
  case MT_BF16:
  case MT_F16:
    return 2;
  case MT_I64:
  case MT_F64:
    return 8;
  case MT_BOOL:
  case MT_U8:
    return 1;
  }
  return 0;
}

const char *mt_dtype_name(mt_dtype dtype) {
  switch (dtype) {
  case MT_F32:
    return "f32";
  case MT_I32:
    return "i32";
  case MT_BOOL:
    return "bool";
  case MT_I64:
    return "i64";
  case MT_F64:
    return "f64";
  case MT_U8:
    return "u8";
  case MT_BF16:
    return "bf16";
  case MT_F16:
    return "f16";
  }
  return "unknown";
}
