// SPDX-License-Identifier: Apache-2.0
//
// What these tests share: a temporary folder, IDX files of a few samples, a plan that computes nothing.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace fixtures {

class TempFolder {
public:
  TempFolder();
  ~TempFolder();
  std::string path(const std::string &name = "") const { return name.empty() ? root_ : root_ + "/" + name; }
  // Names of what is in it.
  std::vector<std::string> entries() const;

private:
  std::string root_;
};

void writeFile(const std::string &path, const std::string &bytes);
void writeGzip(const std::string &path, const std::string &bytes);
std::string readFile(const std::string &path);

// An IDX file of u8 elements with these dimensions.
std::string idx(const std::vector<uint32_t> &dims, const std::string &elements);

// DIR/train-*: `labels.size()` images of 2x3 pixels, pixel p of sample s is s * 6 + p; the labels.
void writeSmallMnist(const TempFolder &folder, const std::string &labels);

struct Free {
  void operator()(mtrun_plan *plan) const { mtrun_plan_free(plan); }
  void operator()(mtrun_session *session) const { mtrun_session_free(session); }
  void operator()(mtrun_dataset *dataset) const { mtrun_dataset_free(dataset); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

// A plan whose programs have no steps: input "image" f32 [?, 2, 3], target "label" i32 [?], output "probabilities" f32
// [?, 4], metrics "loss" and "accuracy", variables "w" f32 [2, 3], "flag" bool [3], "steps" i64 []. `scheduled`: a
// training step computes its learning rate. Without `metrics` there are none. `limit`: what the labels must be below,
// `inputLimit` what the images; -1: the plan does not say.
Owned<mtrun_plan> emptyPlan(int64_t batch, bool scheduled = false, bool metrics = true, int64_t limit = -1,
                            int64_t inputLimit = -1);
// A plan that predicts and has no variable at all.
Owned<mtrun_plan> planWithoutVariables();
Owned<mtrun_session> nullSession(const mtrun_plan *plan, const char *devices = "null:1");
Owned<mtrun_dataset> openData(const mtrun_plan *plan, const std::string &spec);

// Code and message of a status, freed: "0", or "3: message".
std::string text(mt_status *status);
std::string text(const mtrun::Status &status);

} // namespace fixtures
