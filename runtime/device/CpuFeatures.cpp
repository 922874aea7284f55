// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/CpuFeatures.h"

#include <array>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mtrun {
namespace {

#if defined(__x86_64__)

enum Register : uint8_t { Eax, Ebx, Ecx, Edx };

// Register state that the operating system must save: bits of XCR0.
constexpr uint64_t avxState = 0x6;     // xmm, ymm
constexpr uint64_t avx512State = 0xe6; // and opmask, upper zmm
constexpr uint64_t amxState = 0x60000; // tile configuration, tile data

struct Feature {
  std::string_view name;
  uint32_t shard, subshard;
  Register reg;
  uint8_t bit;
  uint64_t state = 0;
};

constexpr Feature features[] = {
    {"x87", 1, 0, Edx, 0},
    {"cx8", 1, 0, Edx, 8},
    {"cmov", 1, 0, Edx, 15},
    {"mmx", 1, 0, Edx, 23},
    {"fxsr", 1, 0, Edx, 24},
    {"sse", 1, 0, Edx, 25},
    {"sse2", 1, 0, Edx, 26},
    {"sse3", 1, 0, Ecx, 0},
    {"pclmul", 1, 0, Ecx, 1},
    {"ssse3", 1, 0, Ecx, 9},
    {"fma", 1, 0, Ecx, 12, avxState},
    {"cx16", 1, 0, Ecx, 13},
    {"sse4.1", 1, 0, Ecx, 19},
    {"sse4.2", 1, 0, Ecx, 20},
    {"crc32", 1, 0, Ecx, 20},
    {"movbe", 1, 0, Ecx, 22},
    {"popcnt", 1, 0, Ecx, 23},
    {"aes", 1, 0, Ecx, 25},
    {"xsave", 1, 0, Ecx, 27},
    {"avx", 1, 0, Ecx, 28, avxState},
    {"f16c", 1, 0, Ecx, 29, avxState},
    {"rdrnd", 1, 0, Ecx, 30},
    {"fsgsbase", 7, 0, Ebx, 0},
    {"bmi", 7, 0, Ebx, 3},
    {"avx2", 7, 0, Ebx, 5, avxState},
    {"bmi2", 7, 0, Ebx, 8},
    {"avx512f", 7, 0, Ebx, 16, avx512State},
    {"avx512dq", 7, 0, Ebx, 17, avx512State},
    {"rdseed", 7, 0, Ebx, 18},
    {"adx", 7, 0, Ebx, 19},
    {"avx512ifma", 7, 0, Ebx, 21, avx512State},
    {"clflushopt", 7, 0, Ebx, 23},
    {"clwb", 7, 0, Ebx, 24},
    {"avx512cd", 7, 0, Ebx, 28, avx512State},
    {"sha", 7, 0, Ebx, 29},
    {"avx512bw", 7, 0, Ebx, 30, avx512State},
    {"avx512vl", 7, 0, Ebx, 31, avx512State},
    {"avx512vbmi", 7, 0, Ecx, 1, avx512State},
    {"pku", 7, 0, Ecx, 4},
    {"avx512vbmi2", 7, 0, Ecx, 6, avx512State},
    {"gfni", 7, 0, Ecx, 8},
    {"vaes", 7, 0, Ecx, 9, avxState},
    {"vpclmulqdq", 7, 0, Ecx, 10, avxState},
    {"avx512vnni", 7, 0, Ecx, 11, avx512State},
    {"avx512bitalg", 7, 0, Ecx, 12, avx512State},
    {"avx512vpopcntdq", 7, 0, Ecx, 14, avx512State},
    {"rdpid", 7, 0, Ecx, 22},
    {"avx512vp2intersect", 7, 0, Edx, 8, avx512State},
    {"serialize", 7, 0, Edx, 14},
    {"amx-bf16", 7, 0, Edx, 22, amxState},
    {"avx512fp16", 7, 0, Edx, 23, avx512State},
    {"amx-tile", 7, 0, Edx, 24, amxState},
    {"amx-int8", 7, 0, Edx, 25, amxState},
    {"avxvnni", 7, 1, Eax, 4, avxState},
    {"avx512bf16", 7, 1, Eax, 5, avx512State},
    {"avxifma", 7, 1, Eax, 23, avxState},
    {"xsaveopt", 0xd, 1, Eax, 0},
    {"xsavec", 0xd, 1, Eax, 1},
    {"sahf", 0x80000001, 0, Ecx, 0},
    {"lzcnt", 0x80000001, 0, Ecx, 5},
    {"sse4a", 0x80000001, 0, Ecx, 6},
    {"prfchw", 0x80000001, 0, Ecx, 8},
    {"64bit", 0x80000001, 0, Edx, 29},
};

uint64_t savedState() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 27))) // osxsave
    return 0;
  uint32_t low, high;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool has(const Feature &feature) {
  std::array<unsigned, 4> registers = {};
  if (!__get_cpuid_count(feature.shard, feature.subshard, &registers[Eax], &registers[Ebx], &registers[Ecx],
                         &registers[Edx]))
    return false;
  return (registers[feature.reg] >> feature.bit & 1) && (savedState() & feature.state) == feature.state;
}

#else

struct Feature {
  std::string_view name;
};
constexpr std::array<Feature, 0> features = {};
bool has(const Feature &) { return false; }

#endif

} // namespace

bool cpuHasFeature(std::string_view name) {
  for (const Feature &feature : features)
    if (feature.name == name)
      return has(feature);
  return false;
}

std::vector<std::string> cpuFeatures() {
  std::vector<std::string> names;
  for (const Feature &feature : features)
    if (has(feature))
      names.emplace_back(feature.name);
  return names;
}

} // namespace mtrun
