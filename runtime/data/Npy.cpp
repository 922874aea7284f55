// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Npy.h"

namespace mtrun {

static const char *descriptor(mt_dtype dtype) {
  switch (dtype) {
  case MT_F32:
    return "<f4";
  case MT_I32:
    return "<i4";
  case MT_BOOL:
    return "|b1";
  case MT_I64:
    return "<i8";
  case MT_F64:
    return "<f8";
  case MT_U8:
    return "|u1";
  }
  return "";
}

std::string npyHeader(mt_dtype dtype, std::span<const int64_t> shape) {
  std::string text = std::string("{'descr': '") + descriptor(dtype) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }"; // one element needs its comma to be a tuple
  size_t fixed = 6 + 2 + 2, total = (fixed + text.size() + 1 + 63) / 64 * 64;
  text.append(total - fixed - text.size() - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

} // namespace mtrun
