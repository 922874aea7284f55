// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/CpuFeatures.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace mtrun {

#if defined(__x86_64__)

namespace {

struct Feature {
  std::string_view name;
  bool (*there)();
};

// __builtin_cpu_supports() needs a literal. It also checks that the operating system saves the registers.
#define FEATURE(name) {name, [] { return __builtin_cpu_supports(name) != 0; }}

// The features of x86-64-v4, which is the highest level that plans use, and bf16 products.
constexpr Feature features[] = {
    FEATURE("sse"),        FEATURE("sse2"),     FEATURE("sse3"),     FEATURE("ssse3"),    FEATURE("sse4.1"),
    FEATURE("sse4.2"),     FEATURE("popcnt"),   FEATURE("avx"),      FEATURE("avx2"),     FEATURE("bmi"),
    FEATURE("bmi2"),       FEATURE("f16c"),     FEATURE("fma"),      FEATURE("lzcnt"),    FEATURE("movbe"),
    FEATURE("avx512f"),    FEATURE("avx512bw"), FEATURE("avx512cd"), FEATURE("avx512dq"), FEATURE("avx512vl"),
    FEATURE("avx512bf16"),
};

#undef FEATURE

} // namespace

bool cpuHasFeature(std::string_view name) {
  for (const Feature &feature : features)
    if (feature.name == name)
      return feature.there();
  return false;
}

#elif defined(__aarch64__)

bool cpuHasFeature(std::string_view name) {
  unsigned long capabilities = getauxval(AT_HWCAP);
  return name == "fp-armv8" ? capabilities & HWCAP_FP : name == "neon" && capabilities & HWCAP_ASIMD;
}

#else

bool cpuHasFeature(std::string_view) { return false; }

#endif

} // namespace mtrun
