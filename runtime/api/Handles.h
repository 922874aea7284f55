// SPDX-License-Identifier: Apache-2.0
//
// What stands behind the opaque handles of mtrun.h, for the files that implement its calls.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/plan/Plan.h"
#include "runtime/session/Session.h"

#include <memory>
#include <new>
#include <system_error>

struct mtrun_plan {
  std::unique_ptr<mtrun::Plan> plan;
};

struct mtrun_session {
  const mtrun_plan *plan; // as given to mtrun_session_create
  std::unique_ptr<mtrun::Session> session;
  bool uncheckedIds = false;
};

namespace mtrun {

// Runs the body of a C call: no exception crosses the API, and running out of memory is a status as any other.
template <typename Body> mt_status *guarded(Body &&body) noexcept {
  try {
    return Status(body()).release();
  } catch (const std::bad_alloc &) {
    return Status(MT_NO_MEMORY, "out of memory").release();
  } catch (const std::system_error &error) {
    if (error.code() == std::errc::resource_unavailable_try_again) // of a thread: its stack has no room
      return Status(MT_NO_MEMORY, "no memory, or no right, for one more thread").release();
    return Status(MT_DEVICE, error.what()).release();
  } catch (const std::exception &error) {
    return Status(MT_DEVICE, error.what()).release();
  }
}

} // namespace mtrun
