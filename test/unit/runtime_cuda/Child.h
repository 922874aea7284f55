// SPDX-License-Identifier: Apache-2.0
//
// A process of its own for each use of the driver, which reads its settings once a process.
#pragma once

#include "runtime/support/status.h"

#include <cstdio>
#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace mtrun::test {

using Settings = std::vector<std::pair<const char *, std::string>>;

// Code for MTC_SIM_PTX.
inline const std::string simulatedCode = MTC_BINARY_DIR "/test/unit/runtime/gpu_kernels.so";

// A child that runs.
struct Child {
  pid_t process = -1;
  FILE *messages = nullptr, *errors = nullptr;
};
// Starts `body` in a child with these settings, at most a minute. `log`: its stderr is for finish().
Child start(const Settings &settings, const std::function<Status()> &body, bool log);
// As inChild.
std::string finish(const Child &child, std::string *log = nullptr);

// Runs `body` in a child with these settings, at most a minute. "0", or the status as "CODE: MESSAGE"; "signal N" where
// one ended the child, "failed" where a check in it did. What it wrote to stderr goes to `log`, if that is not null.
std::string inChild(const Settings &settings, const std::function<Status()> &body, std::string *log = nullptr);

} // namespace mtrun::test
