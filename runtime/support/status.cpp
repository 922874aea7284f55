// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/status.h"

#include <system_error>

namespace mtrun {

Status ioError(const std::string &what, const std::string &path, int errorNumber) {
  return {MT_IO, what + " " + path + ": " + std::system_category().message(errorNumber)};
}

} // namespace mtrun
