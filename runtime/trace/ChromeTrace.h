// SPDX-License-Identifier: Apache-2.0
//
// Writes traces in Chrome's JSON format, which ui.perfetto.dev and chrome://tracing open.
#pragma once

#include "runtime/session/Session.h"

#include <string>

namespace mtrun {

// Writes a process per device and a track per thread of the device. A training step is a span on every track. The
// thread's kernels, waits and all-reduces nest in this span and cover it; transfers, sums and waits nest in their
// all-reduce. MT_INVALID: no step was recorded. MT_IO.
Status writeChromeTrace(const Session &session, const std::string &path);

} // namespace mtrun
