// SPDX-License-Identifier: Apache-2.0
//
// What mt.h declares, and a Status as it leaves the C API.
#include "runtime/abi/mt.h"
#include "runtime/support/status.h"

#include <new>

struct mt_status {
  mt_code code;
  std::string message;
};

// Where there is no memory for any other. Its text is short enough to lie in the string.
static mt_status exhausted = {MT_NO_MEMORY, "out of memory"};

namespace mtrun {

mt_status *Status::release() && {
  if (ok())
    return nullptr;
  auto *status = new (std::nothrow) mt_status{code_, std::move(message_)};
  return status ? status : &exhausted;
}

} // namespace mtrun

mt_code mt_status_code(const mt_status *status) { return status ? status->code : MT_OK; }

const char *mt_status_message(const mt_status *status) { return status ? status->message.c_str() : ""; }

void mt_status_free(mt_status *status) {
  if (status != &exhausted)
    delete status;
}

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
