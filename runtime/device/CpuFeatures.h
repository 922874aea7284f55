// SPDX-License-Identifier: Apache-2.0
//
// What this CPU and its operating system can run, in LLVM's names of features.
#pragma once

#include <string_view>

namespace mtrun {

// Whether code that uses the feature runs here. False for names that this version does not know.
bool cpuHasFeature(std::string_view name);

} // namespace mtrun
