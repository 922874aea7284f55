// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an ONNX file: the compiler says no, with a message, or gives the text of a model.
#include "runtime/abi/mtc.h"

#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The importer opens files, and is not asked about other beginnings.
  int file = memfd_create("fuzz.onnx", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size))
    __builtin_trap();
  std::string path = "/proc/self/fd/" + std::to_string(file);
  mtc_options options = mtc_options_init();
  options.batch = 10;
  options.loss = "mse";
  options.optimizer = "sgd";
  mtc_result *text = nullptr, *weights = nullptr;
  mt_status *status = mtc_import_file(path.c_str(), &options, &text, &weights);
  if ((status == nullptr) != (text != nullptr))
    __builtin_trap();
  if (status && (mt_status_code(status) == MT_OK || !*mt_status_message(status)))
    __builtin_trap();
  mt_status_free(status);
  mtc_result_free(text);
  mtc_result_free(weights);
  close(file);
  return 0;
}
