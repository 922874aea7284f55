// SPDX-License-Identifier: Apache-2.0
//
// What LLVM's archives refer to and libmtc never runs.
#include "llvm/Plugins/PassPlugin.h"

#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

// Debian's LLVM registers Polly where lld optimizes programs of bitcode, which kernels are not.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "0", [](llvm::PassBuilder &) {}};
}

// glibc has it since 2.36, and a wheel is for older ones too. LLVM takes names of temporary files from it.
extern "C" uint32_t arc4random() noexcept {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0)
    std::abort();
  return value;
}
