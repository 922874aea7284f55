// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Gpus.h"
#include "runtime/abi/kernel_symbol.h"

#include "runtime/plan/Check.h"
#include "runtime/support/gpu_architecture.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

// Returns 90 for a feature such as "sm_90" or "compute_90" with the prefix `kind`; -1 for other features.
int capabilityOf(std::string_view feature, std::string_view kind) {
  int number = -1;
  if (!feature.starts_with(kind))
    return -1;
  const char *begin = feature.data() + kind.size(), *end = feature.data() + feature.size();
  auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end ? number : -1;
}

// Rates how well a GPU of capability `has` (10 * major + minor) runs the target: 0: not at all, 1: by its PTX, above 1:
// by machine code.
int fitness(const fb::Target &target, int has) {
  if (target.name()->string_view() == "cuda:simulated")
    return has == 0;
  int code = -1, text = -1;
  for (uint32_t i = 0; i < count(target.features()); ++i) {
    std::string_view feature = target.features()->Get(i)->string_view();
    code = std::max(code, capabilityOf(feature, "sm_"));
    text = std::max(text, capabilityOf(feature, "compute_"));
  }
  if (has == 0)
    return 0;
  if (code >= 0)
    return code / 10 == has / 10 && code <= has ? 2 + code : 0;
  return text >= 0 && text <= has;
}

} // namespace

Status failure(const Driver &driver, Result error, const std::string &what, mt_code code) {
  return {error == outOfMemory ? MT_NO_MEMORY : code, what + ": " + driver.describe(error)};
}

// Computes peak rates. GPU memory transfers data twice per clock.
static void rate(const Driver &driver, Gpu &gpu) {
  int clock = 0, processors = 0, threads = 0, memoryClock = 0, width = 0;
  auto ask = [&](int attribute, int &value) {
    return driver.deviceGetAttribute(&value, attribute, gpu.device) == success && value > 0;
  };
  const GpuArchitecture &architecture = gpuArchitecture(10 * gpu.major + gpu.minor);
  if (ask(multiprocessors, processors) && ask(threadsPerMultiprocessor, threads))
    gpu.residentThreads = static_cast<uint64_t>(processors) * static_cast<uint64_t>(threads);
  if (ask(clockRate, clock) && processors > 0) {
    double perLane = 2.0 * processors * clock * 1e3;
    gpu.flopRate = perLane * architecture.f32;
    gpu.tf32Rate = std::max(gpu.flopRate, perLane * architecture.tf32);
    gpu.halfRate = std::max(gpu.flopRate, perLane * 2 * architecture.tf32);
  }
  if (ask(memoryClockRate, memoryClock) && ask(memoryBusWidth, width))
    gpu.byteRate = 2.0 * memoryClock * 1e3 * width / 8;
}

Status listGpus(const Driver &driver, std::vector<Gpu> &gpus) {
  int count = 0;
  Result result = driver.deviceGetCount(&count);
  if (result != success)
    return failure(driver, result, "cannot count the GPUs", MT_NO_DEVICE);
  for (int i = 0; i < count && result == success; ++i) {
    Gpu gpu;
    gpu.ordinal = i;
    char name[256] = "";
    size_t bytes = 0;
    if ((result = driver.deviceGet(&gpu.device, i)) == success &&
        (result = driver.deviceGetName(name, sizeof name, gpu.device)) == success &&
        (result = driver.deviceGetAttribute(&gpu.major, capabilityMajor, gpu.device)) == success &&
        (result = driver.deviceGetAttribute(&gpu.minor, capabilityMinor, gpu.device)) == success)
      result = driver.deviceTotalMem(&bytes, gpu.device);
    gpu.name = name;
    gpu.bytes = bytes;
    if (result == success)
      rate(driver, gpu);
    gpus.push_back(std::move(gpu));
  }
  if (result != success)
    return failure(driver, result, "cannot ask what GPU cuda:" + std::to_string(gpus.back().ordinal) + " is",
                   MT_NO_DEVICE);
  return {};
}

Status chooseTargets(const Plan &plan, const char *forced, int major, int minor, std::vector<uint32_t> &indices) {
  std::string names;
  std::vector<std::pair<int, uint32_t>> fitting;
  bool named = false;
  for (uint32_t i = 0; i < count(plan.tables().targets()); ++i) {
    const fb::Target &target = *plan.tables().targets()->Get(i);
    std::string_view name = target.name()->string_view();
    if (!target.device() || target.device()->string_view() != "cuda")
      continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
    if (forced && name != forced)
      continue;
    named = true;
    if (int fits = fitness(target, 10 * major + minor); fits > 0)
      fitting.emplace_back(-fits, i);
  }
  std::sort(fitting.begin(), fitting.end());
  indices.clear();
  for (auto [order, index] : fitting)
    indices.push_back(index);
  if (!indices.empty() && plan.tables().version() >= MT_PLAN_GPU_VERSION)
    return {};
  std::string gpu = "a GPU of compute capability " + std::to_string(major) + "." + std::to_string(minor);
  std::string recompile =
      "; recompile the plan with: mtc compile MODEL --target cuda:sm_" + std::to_string(major) + std::to_string(minor);
  if (names.empty())
    return {MT_DEVICE, "expected code for GPUs in the plan, found none" + recompile};
  if (plan.tables().version() < MT_PLAN_GPU_VERSION)
    return {MT_DEVICE, "expected code for GPUs of plan format version " + std::to_string(MT_PLAN_GPU_VERSION) +
                           " or newer, found version " + std::to_string(plan.tables().version()) + recompile};
  if (!named)
    return {MT_INVALID, "expected one of the plan's targets (" + names + "), found " + forced};
  return {MT_DEVICE, "expected code for " + gpu + " in the plan, found " + (forced ? forced : names) + recompile};
}

namespace {

// Returns the text between `before` and one of `ends`; "" if `before` is missing.
std::string between(std::string_view text, std::string_view before, const char *ends) {
  size_t at = text.find(before);
  if (at == std::string_view::npos)
    return "";
  std::string_view rest = text.substr(at + before.size(), 16);
  return std::string(rest.substr(0, rest.find_first_of(ends)));
}

// Returns "a cubin of CUDA 13.0", from the assembler's notes, or "PTX 7.8".
std::string kindOfCode(const std::string &image) {
  if (!image.starts_with("\x7f"
                         "ELF"))
    return "PTX " + between(image, ".version ", "\r\n ;");
  std::string release = between(image, "Cuda compilation tools, release ", ",\n");
  return release.empty() ? "a cubin" : "a cubin of CUDA " + release;
}

} // namespace

Status loadModule(const Driver &driver, const Plan &plan, uint32_t index, Gpu &gpu, bool &refused) {
  const fb::Target &target = *plan.tables().targets()->Get(index);
  std::span<const uint8_t> code = plan.section(target.section());
  // PTX must end with a zero byte; for machine code an additional byte is harmless.
  std::string image(reinterpret_cast<const char *>(code.data()), code.size());
  char log[1024] = "";
  int options[] = {jitErrorLog, jitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  Result result = driver.moduleLoadDataEx(&gpu.module, image.c_str(), 2, options, values);
  // The plan's hashes have been verified, so the code is not damaged: if the driver calls it invalid, the driver is too
  // old.
  refused = result == invalidImage || result == noBinaryForGpu || result == invalidPtx || result == unsupportedPtx;
  if (result != success) {
    gpu.module = nullptr;
    int version = 0;
    std::string what = gpu.title() + ": target " + target.name()->str() + ", " + kindOfCode(image) +
                       ": its code does not load with a driver for CUDA ";
    what += driver.driverGetVersion(&version) == success ? versionText(version) : "of an unknown version";
    log[sizeof log - 1] = 0;
    return failure(driver, result, what + (log[0] ? ": " + std::string(log) : ""));
  }
  for (uint32_t i = 0; i < count(plan.tables().kernels()); ++i) {
    std::string name = kernelSymbol(plan.tables().kernels()->Get(i)->name()->string_view());
    std::string where = gpu.title() + ": target " + target.name()->str() + ": ";
    LoadedKernel &kernel = gpu.kernels.emplace_back();
    if (Result found = driver.moduleGetFunction(&kernel.function, gpu.module, name.c_str()); found != success)
      return failure(driver, found, where + "expected a function " + name + " in its code",
                     found == functionNotFound ? MT_CORRUPT : MT_DEVICE);
    kernel.sharedBytes = i < count(target.usage()) ? target.usage()->Get(i)->dynamic_shared_bytes() : 0;
    if (kernel.sharedBytes == 0)
      continue;
    if (Result set =
            driver.funcSetAttribute(kernel.function, maxDynamicSharedBytes, static_cast<int>(kernel.sharedBytes));
        set != success)
      return failure(driver, set,
                     where + "cannot give " + name + " " + std::to_string(kernel.sharedBytes) +
                         " bytes of workgroup memory");
  }
  return {};
}

void unloadModule(const Driver &driver, Gpu &gpu) {
  gpu.kernels.clear();
  if (gpu.module && driver.ctxSetCurrent(gpu.context) == success)
    (void)driver.moduleUnload(gpu.module);
  gpu.module = nullptr;
}

} // namespace mtrun::cuda
