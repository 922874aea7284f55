// SPDX-License-Identifier: Apache-2.0
//
// A small model, and mtc.h without the bookkeeping.
#pragma once

#include "runtime/abi/mtc.h"

#include <memory>
#include <string>

namespace mtctest {

inline const std::string model = R"(mt.model @small {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" : tensor<?xi32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<4x3xf32>
  %z = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
  %l = mt.sparse_categorical_crossentropy %z, %y from_logits : tensor<?x3xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "z", %z : tensor<?x3xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
)";

struct Outcome {
  mt_code code = MT_OK;
  std::string message;
  std::unique_ptr<mtc_result, decltype(&mtc_result_free)> result{nullptr, mtc_result_free};

  std::string bytes() const {
    return {static_cast<const char *>(mtc_result_data(result.get())), mtc_result_size(result.get())};
  }
};

inline Outcome take(mt_status *status, mtc_result *result) {
  Outcome outcome;
  outcome.code = mt_status_code(status);
  outcome.message = mt_status_message(status);
  outcome.result.reset(result);
  mt_status_free(status);
  return outcome;
}

inline Outcome compile(const std::string &text, const mtc_options &options = mtc_options_init()) {
  mtc_result *result = nullptr;
  mt_status *status = mtc_compile_text(text.data(), text.size(), "model.mlir", &options, &result);
  return take(status, result);
}

// The message of a text that must fail before any stage.
inline std::string importError(const std::string &text) {
  mtc_options options = mtc_options_init();
  options.stop_after = "import";
  Outcome outcome = compile(text, options);
  return outcome.code == MT_INVALID && !outcome.result ? outcome.message : "compiled";
}

} // namespace mtctest
