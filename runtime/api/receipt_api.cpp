// SPDX-License-Identifier: Apache-2.0
//
// The functions of mtrun_receipt.h.
#include "runtime/api/Handles.h"
#include "runtime/loop/Verify.h"
#include "runtime/receipt/Compare.h"
#include "runtime/support/option_struct.h"

using namespace mtrun;

mt_status *mtrun_verify(mtrun_session *session, mtrun_dataset *data, const char *receipt,
                        const mtrun_verify_options *options, mtrun_verify_result *result) {
  return guarded([&]() -> Status {
    if (!session || !data || !receipt || !result)
      return {MT_INVALID, "verify: expected a session, a dataset, a receipt and room for the result, found NULL"};
    mtrun_verify_options read;
    if (Status s = MTRUN_READ_OPTIONS(mtrun_verify_options, note_user, options, read); !s.ok())
      return s;
    Status status = verifyReceipt(*session->session, *data, receipt, read, *result);
    if (!status.ok() && !result->differs) // all processes know a difference
      session->session->lose(status);
    return status;
  });
}

mt_status *mtrun_diff(const char *first, const char *second, const mtrun_plan *plan,
                      void (*line)(void *user, const char *text), void *user, int *differs) {
  return guarded([&]() -> Status {
    if (!first || !second || !differs)
      return {MT_INVALID, "diff: expected two paths and room for the result, found NULL"};
    std::vector<std::string> lines;
    Status status = compareFiles(first, second, plan ? plan->plan.get() : nullptr, lines);
    *differs = status.ok() && !lines.empty();
    for (const std::string &text : lines)
      if (line)
        line(user, text.c_str());
    return status;
  });
}
