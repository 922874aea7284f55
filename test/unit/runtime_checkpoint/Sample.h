// SPDX-License-Identifier: Apache-2.0
//
// A small checkpoint for these tests.
#pragma once

#include "Fixtures.h"
#include "runtime/checkpoint/Checkpoint.h"

#include <cmath>
#include <fcntl.h>
#include <unistd.h>

namespace fixtures {

struct Sample {
  std::vector<float> weights = {1, -2, 3.5f, 4, 5, 6};
  std::vector<int64_t> steps = {7};
  mtrun::Manifest manifest;

  explicit Sample(int64_t step = 7, float first = 1) {
    weights[0] = first;
    manifest.model = "sample";
    manifest.plan = {1, 2};
    manifest.state.step = step;
    manifest.state.seed = 42;
    manifest.state.epoch = step > 0;
    manifest.state.sums = {0.1, NAN};
    manifest.state.totals = {3, 0};
    manifest.state.names = {"loss", "val_loss"};
    if (step > 0)
      manifest.state.history = {0.5, INFINITY};
    manifest.state.callbacks["early_stop"] = {1, 0.1, 2};
  }
  std::vector<mtrun::SafeTensor> tensors() const {
    return {{"dense/kernel", MT_F32, {2, 3}, std::as_bytes(std::span(weights))},
            {"steps", MT_I64, {}, std::as_bytes(std::span(steps))}};
  }
  mtrun::Status write(mtrun::Disk &disk, const std::string &path) const {
    int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mtrun::Status status = mtrun::writeCheckpoint(disk, folder, path, manifest, tensors());
    close(folder);
    return status;
  }
  mtrun::Status write(const std::string &path) const {
    mtrun::Disk disk;
    return write(disk, path);
  }
};

} // namespace fixtures
