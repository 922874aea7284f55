// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/CpuTarget.h"
#include "runtime/support/suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mtc;

static constexpr const char *x86 = "x86_64-unknown-linux-gnu", *arm = "aarch64-unknown-linux-gnu";

llvm::ArrayRef<CpuTarget> mtc::cpuTargets() {
  // x86-64 levels: x86-64 psABI, section 3.1.1. armv8-a: Arm Architecture Reference Manual, A1.5, 32 vector registers
  // of 128 bits, with FMA.
  static const std::vector<CpuTarget> targets = [] {
    std::vector<std::string> v3 = {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}, v4 = v3;
    for (const char *feature : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})
      v4.push_back(feature);
    std::vector<std::string> bf16 = v4;
    bf16.push_back("avx512bf16");
    return std::vector<CpuTarget>{
        {"x86-64-v4-bf16", x86, "x86-64-v4", bf16, {512, 32, /*dots=*/true}, "", "+avx512bf16"},
        {"x86-64-v4", x86, "x86-64-v4", v4, {512, 32}, ""},
        {"x86-64-v3", x86, "x86-64-v3", v3, {256, 16}, ""},
        {"armv8-a", arm, "generic", {"fp-armv8", "neon"}, {128, 32, false, VectorUnit::Control::fpcr}, ""},
    };
  }();
  return targets;
}

std::string mtc::cpuTargetNames() {
  std::string names = "native";
  for (const CpuTarget &target : cpuTargets())
    names += (&target == &cpuTargets().back() ? " or " : ", ") + target.name;
  return names;
}

static bool isOfThisProgram(const CpuTarget &target) {
  return llvm::Triple(target.triple).getArch() == llvm::Triple(llvm::sys::getProcessTriple()).getArch();
}

std::vector<std::string> mtc::defaultCpuTargets(bool bf16) {
  std::vector<std::string> names;
  for (const CpuTarget &target : cpuTargets())
    if (isOfThisProgram(target) && (bf16 || !target.vectors.dots))
      names.push_back(target.name);
  return names;
}

static llvm::Expected<CpuTarget> findNative() {
  auto host = llvm::sys::getHostCPUFeatures();
  std::string cpu = llvm::sys::getHostCPUName().str(), lowest;
  for (CpuTarget target : cpuTargets()) {
    if (!isOfThisProgram(target))
      continue;
    lowest = target.name;
    if (!llvm::all_of(target.features, [&](const std::string &feature) { return host.lookup(feature); }))
      continue;
    target.name = target.tune = cpu;
    return target;
  }
  return llvm::createStringError("expected a CPU with at least " + (lowest.empty() ? "x86-64-v3 or armv8-a" : lowest) +
                                 ", found " + cpu);
}

llvm::Expected<CpuTarget> mtc::findTarget(llvm::StringRef name) {
  if (name == "native")
    return findNative();
  std::vector<std::string> names;
  for (const CpuTarget &target : cpuTargets()) {
    if (target.name == name)
      return target;
    names.push_back(target.name);
  }
  return llvm::createStringError("expected the CPU to be " + cpuTargetNames() + ", found '" + name.str() + "'" +
                                 mtrun::didYouMean(name.str(), names));
}
