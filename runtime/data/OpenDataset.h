// SPDX-License-Identifier: Apache-2.0
//
// From a specification, or from what the caller has, to samples that are bound to a plan and checked against it.
#pragma once

#include "runtime/data/Dataset.h"

#include <memory>

namespace mtrun {

// What a specification names. MT_INVALID.
Status openDataset(const Plan &plan, const char *spec, std::unique_ptr<mtrun_dataset> &data);

// The caller's own: arrays, or with `source` a callback. `keys`: of a specification, or null.
Status openOwnDataset(const Plan &plan, const mtrun_field *fields, int32_t count, int64_t samples,
                      const mtrun_source *source, const char *keys, std::unique_ptr<mtrun_dataset> &data);

} // namespace mtrun
