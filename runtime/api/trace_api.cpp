// SPDX-License-Identifier: Apache-2.0
//
// The functions of mtrun.h for traces and profiles.
#include "runtime/api/Handles.h"
#include "runtime/support/option_struct.h"
#include "runtime/trace/ChromeTrace.h"
#include "runtime/trace/Profile.h"

using mtrun::guarded;
using mtrun::Status;

mt_status *mtrun_trace_start(mtrun_session *session, const mtrun_trace_options *options) {
  return guarded([&]() -> Status {
    mtrun_trace_options read;
    if (Status status = MTRUN_READ_OPTIONS(mtrun_trace_options, profile, options, read); !status.ok())
      return status;
    return session->session->startTrace(
        {read.first, read.last, read.profile != 0, read.peak_flops, read.peak_bandwidth});
  });
}

mt_status *mtrun_trace_write(mtrun_session *session, const char *path) {
  return guarded([&] { return mtrun::writeChromeTrace(*session->session, path); });
}

mt_status *mtrun_profile_get(mtrun_session *session, mtrun_profile *profile) {
  return guarded([&] { return mtrun::profileOf(*session->session, *profile); });
}

mt_status *mtrun_profile_get_entry(mtrun_session *session, int32_t index, mtrun_profile_entry *entry) {
  return guarded([&] { return mtrun::profileEntry(*session->session, index, *entry); });
}
