// SPDX-License-Identifier: Apache-2.0
//
// The status handles of the C API.
#include "runtime/support/status.h"
#include "runtime/support/text.h"

#include <new>

struct mt_status {
  mt_code code;
  std::string message;
};

// The status if no memory is left for another. Its text is short enough to be stored inside std::string.
static mt_status exhausted = {MT_NO_MEMORY, "out of memory"};

namespace mtrun {

mt_status *Status::release() && {
  if (ok())
    return nullptr;
  makePrintable(message_); // messages contain names and cells from files; callers expect printable UTF-8
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
