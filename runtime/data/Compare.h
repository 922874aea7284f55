// SPDX-License-Identifier: Apache-2.0
//
// The data of a process as text that other processes can compare with theirs.
#pragma once

#include "runtime/data/Dataset.h"

#include <string>

namespace mtrun {

// Appends lines "WHAT: VALUE" to `lines`: the number of samples, the fields, and hashes of 64 samples, including the
// first and the last. `what` names the data. A caller's callback gives no samples here. MT_IO and others: one of these
// samples cannot be read.
Status appendDataLines(const mtrun_dataset &data, const std::string &what, std::string &lines);

} // namespace mtrun
