// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a CSV, with some of the keys that a user may give: the data set says no, or has samples that can be
// read. The first byte chooses the keys. The file is one in memory.
#include "runtime/abi/mtrun.h"

#include "TestPlan.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

static mtrun_plan *makePlan() {
  mtrun::test::TestPlanShape shape = {4, 2, 3};
  std::vector<uint8_t> bytes = mtrun::test::makePlan(shape);
  mtrun_plan *plan = nullptr;
  if (mtrun_plan_load_memory(bytes.data(), bytes.size(), &plan))
    __builtin_trap();
  return plan;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mtrun_plan *plan = makePlan();
  static int file = memfd_create("csv", MFD_CLOEXEC);
  static const char *keys[] = {"", ",label=y", ",label=0", ",range=0:2", ",x=a+b+c,y=y", ",skip=id", ",scale=1/255"};
  if (size == 0)
    return 0;
  if (ftruncate(file, 0) != 0 || pwrite(file, data + 1, size - 1, 0) != static_cast<ssize_t>(size - 1))
    __builtin_trap();
  std::string spec = "csv:/proc/self/fd/" + std::to_string(file) + keys[data[0] % std::size(keys)];
  mtrun_dataset *dataset = nullptr;
  mt_status *status = mtrun_dataset_open(plan, spec.c_str(), &dataset);
  if ((status == nullptr) != (dataset != nullptr) || (status && strlen(mt_status_message(status)) == 0))
    __builtin_trap();
  if (dataset && mtrun_dataset_size(dataset) < 1)
    __builtin_trap();
  mt_status_free(status);
  mtrun_dataset_free(dataset);
  // Without a plan the keys of encodings make rules from the file, and read it by them.
  static const char *encodings[] = {"standardize=yes", "missing=mean,index=a", "missing=0,hash=a:4", "dates=a",
                                    "quantiles=a:3,categories=b"};
  spec = spec.substr(0, spec.find(',')) + "," + encodings[data[0] / std::size(keys) % std::size(encodings)];
  status = mtrun_data_describe(spec.c_str(), 1, [](void *, const char *) {}, nullptr);
  if (status && strlen(mt_status_message(status)) == 0)
    __builtin_trap();
  mt_status_free(status);
  return 0;
}
