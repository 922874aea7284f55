// SPDX-License-Identifier: Apache-2.0
//
// Finds where two files of one kind differ first: checkpoints, .safetensors files, plans, receipts, digests of
// launches.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/support/safetensors.h"
#include "runtime/support/status.h"

#include <string>
#include <vector>

namespace mtrun {

// `lines` receives the first difference and the number of all; nothing if there is none. `plan`, which may be null: the
// plan whose order the variables have; else they have the order of the first file. MT_INVALID: two kinds, or none of
// these.
Status compareFiles(const std::string &first, const std::string &second, const Plan *plan,
                    std::vector<std::string> &lines);

// Compares tensors by name, in the order of the first list.
void compareTensors(const std::vector<SafeTensor> &first, const std::vector<SafeTensor> &second,
                    std::vector<std::string> &lines);
// Compares tables, constants, initial values and the code of each kernel.
void comparePlans(const Plan &first, const Plan &second, std::vector<std::string> &lines);

} // namespace mtrun
