// SPDX-License-Identifier: Apache-2.0
//
// What this CPU and its operating system can run, in LLVM's names of features.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

// Whether code that uses the feature runs here. False for names that this version does not know.
bool cpuHasFeature(std::string_view name);

// The features that it knows of and that are there, in the table's order.
std::vector<std::string> cpuFeatures();

} // namespace mtrun
