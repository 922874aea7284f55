// SPDX-License-Identifier: Apache-2.0
//
// What a host does with a plan, on devices that run no code: whatever the verifier lets through must be safe to use.
#pragma once

#include <cstddef>

namespace mtrun::test {

enum class Exercised { Refused, Loaded, Ran };

// Loads the plan; where it is small, makes a session of `devices` null devices and runs init, training, a fit of two
// steps, evaluation, predictions, a benchmark, reads and sets variables. Aborts where a failure has no message.
Exercised exercise(const void *plan, size_t size, int devices, bool privateVariables);

} // namespace mtrun::test
