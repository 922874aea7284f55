// SPDX-License-Identifier: Apache-2.0
//
// The structs of mtrun.h's opaque handles, for the files that implement the C API.
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
  const mtrun_plan *plan; // the plan that mtrun_session_create() received
  std::unique_ptr<mtrun::Session> session;
  bool uncheckedIds = false, comparesTensors = false;
};

namespace mtrun {

// Runs the body of a C call. No exception leaves the C API: running out of memory becomes a status too.
template <typename Body> mt_status *guarded(Body &&body) noexcept {
  try {
    return Status(body()).release();
  } catch (const std::bad_alloc &) {
    return Status(MT_NO_MEMORY, "out of memory").release();
  } catch (const std::system_error &error) {
    // a thread could not be created: no memory for its stack, or a limit
    if (error.code() == std::errc::resource_unavailable_try_again)
      return Status(MT_NO_MEMORY, "no memory, or no right, for one more thread").release();
    return Status(MT_DEVICE, error.what()).release();
  } catch (const std::exception &error) {
    return Status(MT_DEVICE, error.what()).release();
  }
}

} // namespace mtrun
