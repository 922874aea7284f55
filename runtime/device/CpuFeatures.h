// SPDX-License-Identifier: Apache-2.0
//
// CPU features that this CPU and its operating system support, by LLVM's names.
#pragma once

#include <string_view>

namespace mtrun {

// Returns true if the CPU has the feature; false if the name is unknown.
bool cpuHasFeature(std::string_view name);

} // namespace mtrun
