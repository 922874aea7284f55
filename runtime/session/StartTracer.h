// SPDX-License-Identifier: Apache-2.0
//
// Binds a tracer to a program.
#pragma once

#include "runtime/device/Tracer.h"
#include "runtime/session/Bind.h"

#include <memory>

namespace mtrun {

// From the next run of `executable` on, its threads record their activity in `tracer`, which must outlive the
// executable. Frees the earlier tracer. MT_INVALID, MT_NO_MEMORY.
Status startTracer(const TracerOptions &options, DeviceGroup &group, Executable &executable,
                   std::unique_ptr<Tracer> &tracer);

} // namespace mtrun
