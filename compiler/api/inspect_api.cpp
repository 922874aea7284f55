// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Result.h"
#include "compiler/inspect/Inspect.h"
#include "runtime/abi/plan_verify.h"

#include <cstring>
#include <functional>
#include <memory>

using mtrun::Status;

static Status inspect(std::span<const uint8_t> file,
                      const std::function<std::string(const mtrun::PlanFileView &)> &print, mtc_result **result) {
  // The caller's bytes may lie anywhere; tables are read in place and want eight-byte alignment.
  std::unique_ptr<uint64_t[]> copy(new uint64_t[file.size() / sizeof(uint64_t) + 1]);
  if (!file.empty())
    std::memcpy(copy.get(), file.data(), file.size());
  auto bytes = std::span(reinterpret_cast<const uint8_t *>(copy.get()), file.size());
  mtrun::PlanFileView view = mtrun::openPlanFile(bytes);
  if (!view.tables)
    return {MT_CORRUPT, view.message};
  if (Status status = mtrun::verifyPlan(*view.tables); !status.ok())
    return status;
  std::string text = print(view);
  auto made = std::make_unique<mtc_result>();
  made->bytes.assign(text.begin(), text.end());
  *result = made.release();
  return {};
}

mt_status *mtc_inspect(const void *plan, size_t size, int json, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&] {
    return inspect({static_cast<const uint8_t *>(plan), size}, json ? mtc::inspectJson : mtc::inspectText, result);
  });
}

mt_status *mtc_inspect_html(const void *plan, size_t size, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&] { return inspect({static_cast<const uint8_t *>(plan), size}, mtc::inspectHtml, result); });
}

mt_status *mtc_inspect_gpus(const void *plan, size_t size, const char *gpu, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&]() -> Status {
    Status status = inspect(
        {static_cast<const uint8_t *>(plan), size},
        [&](const mtrun::PlanFileView &view) { return mtc::inspectGpus(view, gpu); }, result);
    if (!status.ok() || !(*result)->bytes.empty())
      return status;
    mtc_result_free(*result);
    *result = nullptr;
    return {MT_INVALID, "expected a plan that trains and one of the GPUs " + mtc::knownGpus() + ", found " + gpu};
  });
}

mt_status *mtc_inspect_devices(const void *plan, size_t size, int32_t devices, int html, mtc_result **result) {
  *result = nullptr;
  return mtc::guarded([&]() -> Status {
    uint32_t most = 0;
    Status status = inspect(
        {static_cast<const uint8_t *>(plan), size},
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
