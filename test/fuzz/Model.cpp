// SPDX-License-Identifier: Apache-2.0
//
// Any text as a model: the compiler says no, with a message, or gives a plan that the loader's format checks accept.
//
// Most texts are read and verified only, in a context that many share: a context of its own takes a hundred times as
// long as the text of a small model, and a compilation a thousand times as long. One in 64 comes to the compiler as
// from a user, and is taken to the assignment of buffers; one in 2048 to a plan.
#include "frontend/mlir/ReadModel.h"
#include "runtime/abi/mtc.h"
#include "runtime/abi/plan_file.h"
#include "test/fuzz/Context.h"

#include <cstring>
#include <vector>

namespace {

constexpr int64_t batch = 10;

void compile(const char *text, size_t size, bool whole) {
  mtc_options options = mtc_options_init();
  options.batch = batch;
  options.shards = 4;
  options.cpu = "x86-64-v3";
  if (!whole)
    options.stop_after = "allocate";
  mtc_result *result = nullptr;
  mt_status *status = mtc_compile_text(text, size, "fuzz.mlir", &options, &result);
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
}

void read(llvm::StringRef text) {
  mlir::MLIRContext &context = sharedContext();
  mtc::DiagnosticLines diagnostics(context, "fuzz.mlir", nullptr);
  mlir::OwningOpRef<mlir::ModuleOp> module = mtc::readModel(text, "fuzz.mlir", batch, context, diagnostics);
  if (!module && diagnostics.errors().empty())
    __builtin_trap();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = reinterpret_cast<const char *>(data);
  if (uint64_t draw = mtrun::hash128({data, size}).low; draw % 64 == 0)
    compile(text, size, draw % 2048 == 0);
  else
    read({text, size});
  return 0;
}
