// SPDX-License-Identifier: Apache-2.0
//
// Any text as a model: the compiler says no, with a message, or gives a plan that the loader's format checks accept.
//
// Most texts are read and verified only, since a whole compilation takes a thousand times as long: one in 32 goes on to
// the assignment of buffers, one in 1024 to a plan.
#include "runtime/abi/mtc.h"
#include "runtime/abi/plan_file.h"

#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mtc_options options = mtc_options_init();
  options.batch = 10;
  options.shards = 4;
  options.cpu = "x86-64-v3";
  uint64_t draw = mtrun::hash128({data, size}).low % 1024;
  bool whole = draw == 0;
  if (!whole)
    options.stop_after = draw % 32 == 1 ? "allocate" : "import";
  mtc_result *result = nullptr;
  mt_status *status = mtc_compile_text(reinterpret_cast<const char *>(data), size, "fuzz.mlir", &options, &result);
  if ((status == nullptr) != (result != nullptr))
    __builtin_trap();
  if (status && (mt_status_code(status) == MT_OK || !*mt_status_message(status)))
    __builtin_trap();
  if (result && whole) {
    std::vector<uint64_t> aligned((mtc_result_size(result) + 7) / 8);
    std::memcpy(aligned.data(), mtc_result_data(result), mtc_result_size(result));
    auto file = mtrun::openPlanFile({reinterpret_cast<const uint8_t *>(aligned.data()), mtc_result_size(result)});
    if (file.fault != mtrun::PlanFileFault::None)
      __builtin_trap();
  }
  mt_status_free(status);
  mtc_result_free(result);
  return 0;
}
