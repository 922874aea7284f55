// SPDX-License-Identifier: Apache-2.0
//
// Opens data from a specification or from the caller's memory, binds it to a plan and checks it.
#pragma once

#include "runtime/data/Dataset.h"

#include <memory>

namespace mtrun {

// Opens the data of a specification. MT_INVALID.
Status openDataset(const Plan &plan, const char *spec, std::unique_ptr<mtrun_dataset> &data);

// Opens the caller's arrays, or with `source` the caller's callback. `keys`: options of a specification, or null.
Status openOwnDataset(const Plan &plan, const mtrun_field *fields, int32_t count, int64_t samples,
                      const mtrun_source *source, const char *keys, std::unique_ptr<mtrun_dataset> &data);

} // namespace mtrun
