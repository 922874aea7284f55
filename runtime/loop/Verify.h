// SPDX-License-Identifier: Apache-2.0
//
// Checks a receipt: trains windows of a run again and compares each record.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/data/Dataset.h"
#include "runtime/receipt/Receipt.h"
#include "runtime/session/Session.h"

#include <string>
#include <vector>

namespace mtrun {

// A part of a run, from step `begin` to step `end`.
struct Window {
  int64_t begin = 0, end = 0;
  bool operator==(const Window &) const = default;
};

// Returns the windows to check, sorted, each from a record to a record or to the end of the run. MT_INVALID: a window
// outside the receipt.
Status chooseWindows(const Receipt &receipt, const mtrun_verify_options &options, std::vector<Window> &windows);
// Sorts windows by their begin and joins windows that touch.
void joinWindows(std::vector<Window> &windows);

Status verifyReceipt(Session &session, mtrun_dataset &data, const char *path, const mtrun_verify_options &options,
                     mtrun_verify_result &result);

} // namespace mtrun
