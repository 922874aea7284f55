// SPDX-License-Identifier: Apache-2.0
//
// What LLVM's archives refer to and libmtc never runs.
#include "llvm/Plugins/PassPlugin.h"

// Debian's LLVM registers Polly where lld optimizes programs of bitcode, which kernels are not.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "0", [](llvm::PassBuilder &) {}};
}
