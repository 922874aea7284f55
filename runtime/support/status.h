// SPDX-License-Identifier: Apache-2.0
//
// Success or an error with its code and message: the result of internal functions that the C API calls.
#pragma once

#include "runtime/abi/mt.h"

#include <string>
#include <utility>

namespace mtrun {

class [[nodiscard]] Status {
public:
  Status() = default; // success
  Status(mt_code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == MT_OK; }
  mt_code code() const { return code_; }
  const std::string &message() const { return message_; }

  // Returns the status with `prefix` before its message; success stays success.
  Status in(const std::string &prefix) && { return ok() ? Status() : Status(code_, prefix + message_); }

  // Converts the status for the C API: NULL for success, else a status that the caller owns.
  mt_status *release() &&;

private:
  mt_code code_ = MT_OK;
  std::string message_;
};

// Returns MT_IO with the path and the system's reason.
Status ioError(const std::string &what, const std::string &path, int errorNumber);

} // namespace mtrun
