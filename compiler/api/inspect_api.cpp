// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Result.h"
#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Measured.h"
#include "runtime/abi/plan_verify.h"
#include "runtime/support/option_struct.h"

#include <cstring>
#include <functional>
#include <memory>

using mtrun::Status;

namespace {

// Opens a plan in the caller's bytes without copying them, or in a copy if they are not aligned to eight bytes, as
// FlatBuffers requires.
struct OpenPlan {
  std::unique_ptr<uint64_t[]> copy;
  mtrun::PlanFileView view;

  Status open(std::span<const uint8_t> file) {
    copy.reset(new uint64_t[file.size() / sizeof(uint64_t) + 1]);
    if (!file.empty())
      std::memcpy(copy.get(), file.data(), file.size());
    view = mtrun::openPlanFile({reinterpret_cast<const uint8_t *>(copy.get()), file.size()});
    if (!view.tables)
      return {MT_CORRUPT, view.message};
    return mtrun::verifyPlan(*view.tables);
  }
};

std::span<const uint8_t> bytesOf(const void *data, size_t size) { return {static_cast<const uint8_t *>(data), size}; }

void give(const std::string &text, mtc_result **result) {
  auto output = std::make_unique<mtc_result>();
  output->bytes.assign(text.begin(), text.end());
  *result = output.release();
}

Status inspect(std::span<const uint8_t> file, const std::function<std::string(const mtrun::PlanFileView &)> &print,
               mtc_result **result) {
  OpenPlan plan;
  if (Status status = plan.open(file); !status.ok())
    return status;
  give(print(plan.view), result);
  return {};
}

Status unknownGpu(const char *gpu) {
  return {MT_INVALID, "expected a plan that trains and one of the GPUs " + mtc::knownGpus() + ", found " + gpu};
}

Status readMeasured(const OpenPlan &plan, const mtc_inspect_options &options, mtc::Measured &measured) {
  const mt::plan::Program *program = mtc::mainProgram(*plan.view.tables);
  if (!program || program->name()->string_view() != "train_step")
    return {MT_INVALID,
            "expected a plan that trains, since a trace is of a train_step, found a plan without train_step"};
  return mtc::readTrace(*plan.view.tables, *program, {options.trace, options.trace_size}, measured);
}

Status compare(const OpenPlan &plan, const mtc_inspect_options &options, const mtc::Measured &measured,
               mtc_result **result) {
  OpenPlan other;
  mtc::CompareNames names = {options.name ? options.name : "the plan",
                             options.against_name ? options.against_name : "the other plan"};
  if (Status status = other.open(bytesOf(options.against, options.against_size)); !status.ok())
    return std::move(status).in(names.b + ": ");
  mtc::Rates rates = options.gpu           ? mtc::ratesOfGpu(plan.view, options.gpu)
                     : measured.hasFloor() ? mtc::Rates{measured.peakFlops, measured.peakBytes, "as the trace says"}
                                           : mtc::nominalRates();
  if (rates.flops <= 0)
    return unknownGpu(options.gpu);
  give(options.html ? mtc::comparisonHtml(plan.view, other.view, names, rates)
                    : mtc::comparisonText(plan.view, other.view, names, rates),
       result);
  return {};
}

Status inspectWith(std::span<const uint8_t> file, const mtc_inspect_options &options, mtc_result **result) {
  OpenPlan plan;
  mtc::Measured measured;
  if (Status status = plan.open(file); !status.ok())
    return status;
  if (options.trace)
    if (Status status = readMeasured(plan, options, measured); !status.ok())
      return std::move(status).in("trace: ");
  if (options.against)
    return compare(plan, options, measured, result);
  if (options.hosts && !options.trace) {
    std::string text;
    Status status = mtc::inspectHosts(plan.view, {options.gpu, options.cpu, options.hosts, options.network}, text);
    if (status.ok())
      give(std::move(text), result);
    return status;
  }
  give(options.html    ? mtc::inspectHtml(plan.view, options.trace ? &measured : nullptr)
       : options.trace ? mtc::inspectTrace(plan.view, measured)
                       : mtc::inspectText(plan.view),
       result);
  return {};
}

} // namespace

mt_status *mtc_inspect_with(const void *plan, size_t size, const mtc_inspect_options *options, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&]() -> Status {
    mtc_inspect_options read;
    if (Status status = MTRUN_READ_OPTIONS(mtc_inspect_options, gpu, options, read); !status.ok())
      return status;
    return inspectWith(bytesOf(plan, size), read, result);
  });
}

mt_status *mtc_inspect(const void *plan, size_t size, int json, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&] { return inspect(bytesOf(plan, size), json ? mtc::inspectJson : mtc::inspectText, result); });
}

mt_status *mtc_inspect_html(const void *plan, size_t size, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&] {
    return inspect(bytesOf(plan, size), [](const mtrun::PlanFileView &view) { return mtc::inspectHtml(view); }, result);
  });
}

mt_status *mtc_inspect_gpus(const void *plan, size_t size, const char *gpu, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&]() -> Status {
    Status status = inspect(
        bytesOf(plan, size), [&](const mtrun::PlanFileView &view) { return mtc::inspectGpus(view, gpu); }, result);
    if (!status.ok() || !(*result)->bytes.empty())
      return status;
    mtc_result_free(*result);
    *result = nullptr;
    return unknownGpu(gpu);
  });
}

mt_status *mtc_inspect_devices(const void *plan, size_t size, int32_t devices, int html, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&]() -> Status {
    uint32_t most = 0;
    Status status = inspect(
        bytesOf(plan, size),
        [&](const mtrun::PlanFileView &view) {
          most = view.tables->shards();
          if (devices < 1 || static_cast<uint32_t>(devices) > most)
            return std::string();
          auto count = static_cast<uint32_t>(devices);
          return html ? mtc::inspectDevicesHtml(view, count) : mtc::inspectDevices(view, count);
        },
        result);
    if (!status.ok() || !(*result)->bytes.empty())
      return status;
    mtc_result_free(*result);
    *result = nullptr;
    return {MT_INVALID, "expected 1 to " + std::to_string(most) + " devices, found " + std::to_string(devices)};
  });
}
