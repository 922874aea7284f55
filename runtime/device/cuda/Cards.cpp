// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Cards.h"

#include "runtime/plan/Check.h"

#include <charconv>
#include <string_view>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

// "sm_90" or "compute_90" after `kind`: 90; -1 if it is neither.
int capabilityOf(std::string_view feature, std::string_view kind) {
  int number = -1;
  if (!feature.starts_with(kind))
    return -1;
  const char *begin = feature.data() + kind.size(), *end = feature.data() + feature.size();
  auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end ? number : -1;
}

// How well a card of capability `has` (10 * major + minor) runs the target: 0 not at all, 1 through its PTX text, above
// that by machine code.
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

// CUDA C++ Programming Guide, arithmetic instructions: fused multiply-adds of float32 a clock and multiprocessor.
// Memory moves data at both edges of its clock.
static void rate(const Driver &driver, Card &card) {
  int clock = 0, processors = 0, memoryClock = 0, width = 0;
  auto ask = [&](int attribute, int &value) {
    return driver.deviceGetAttribute(&value, attribute, card.device) == success && value > 0;
  };
  int lanes = card.major == 7 || (card.major == 8 && card.minor == 0) ? 64 : 128;
  if (ask(clockRate, clock) && ask(multiprocessors, processors))
    card.flopRate = 2.0 * lanes * processors * clock * 1e3;
  if (ask(memoryClockRate, memoryClock) && ask(memoryBusWidth, width))
    card.byteRate = 2.0 * memoryClock * 1e3 * width / 8;
}

Status listCards(const Driver &driver, std::vector<Card> &cards) {
  int count = 0;
  Result result = driver.deviceGetCount(&count);
  if (result != success)
    return failure(driver, result, "cannot count the GPUs", MT_NO_DEVICE);
  for (int i = 0; i < count && result == success; ++i) {
    Card card;
    card.ordinal = i;
    char name[256] = "";
    size_t bytes = 0;
    if ((result = driver.deviceGet(&card.device, i)) == success &&
        (result = driver.deviceGetName(name, sizeof name, card.device)) == success &&
        (result = driver.deviceGetAttribute(&card.major, capabilityMajor, card.device)) == success &&
        (result = driver.deviceGetAttribute(&card.minor, capabilityMinor, card.device)) == success)
      result = driver.deviceTotalMem(&bytes, card.device);
    card.name = name;
    card.bytes = bytes;
    if (result == success)
      rate(driver, card);
    cards.push_back(std::move(card));
  }
  if (result != success)
    return failure(driver, result, "cannot ask what GPU cuda:" + std::to_string(cards.back().ordinal) + " is",
                   MT_NO_DEVICE);
  return {};
}

Status chooseTarget(const Plan &plan, const char *forced, int major, int minor, uint32_t &index) {
  std::string names;
  int best = 0;
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
    if (int fits = fitness(target, 10 * major + minor); fits > best) {
      best = fits;
      index = i;
    }
  }
  if (best > 0)
    return {};
  std::string card = "a card of compute capability " + std::to_string(major) + "." + std::to_string(minor);
  std::string recompile =
      "; recompile the plan with: mtc compile MODEL --target cuda:sm_" + std::to_string(major) + std::to_string(minor);
  if (names.empty())
    return {MT_DEVICE, "expected code for GPUs in the plan, found none" + recompile};
  if (!named)
    return {MT_INVALID, "expected one of the plan's targets (" + names + "), found " + forced};
  return {MT_DEVICE, "expected code for " + card + " in the plan, found " + (forced ? forced : names) + recompile};
}

Status loadModule(const Driver &driver, const Plan &plan, uint32_t index, Card &card) {
  const fb::Target &target = *plan.tables().targets()->Get(index);
  std::string what = card.title() + ": target " + target.name()->str() + ": its code does not load";
  std::span<const uint8_t> code = plan.section(target.section());
  // PTX text ends with a zero byte; for machine code one more does no harm.
  std::string image(reinterpret_cast<const char *>(code.data()), code.size());
  char log[1024] = "";
  int options[] = {jitErrorLog, jitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  Result result = driver.moduleLoadDataEx(&card.module, image.c_str(), 2, options, values);
  if (result != success) {
    bool damaged = result == invalidImage || result == invalidPtx;
    log[sizeof log - 1] = 0;
    return failure(driver, result, what + (log[0] ? ": " + std::string(log) : ""), damaged ? MT_CORRUPT : MT_DEVICE);
  }
  for (uint32_t i = 0; i < count(plan.tables().kernels()); ++i) {
    const char *name = plan.tables().kernels()->Get(i)->name()->c_str();
    card.kernels.push_back(nullptr);
    if (Result found = driver.moduleGetFunction(&card.kernels.back(), card.module, name); found != success)
      return failure(driver, found,
                     card.title() + ": target " + target.name()->str() + ": expected a function " + name +
                         " in its code",
                     found == functionNotFound ? MT_CORRUPT : MT_DEVICE);
  }
  return {};
}

} // namespace mtrun::cuda
