// SPDX-License-Identifier: Apache-2.0
//
// A trace in Chrome's JSON format, which ui.perfetto.dev and chrome://tracing open.
#pragma once

#include "runtime/session/Session.h"

#include <string>

namespace mtrun {

// A process for each device, a track for each of its threads. A step of training is a span on every track; the kernels,
// waits and all-reduces of the thread nest in it, an all-reduce's transfers, sums and waits in that, and together they
// cover it. MT_INVALID: no step was kept. MT_IO.
Status writeChromeTrace(const Session &session, const std::string &path);

} // namespace mtrun
