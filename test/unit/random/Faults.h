// SPDX-License-Identifier: Apache-2.0
#ifndef TEST_UNIT_RANDOM_FAULTS_H
#define TEST_UNIT_RANDOM_FAULTS_H

#include "test/unit/random/Comparison.h"

namespace mtc::test {

// Faults of the kind that passes could have, one or more after each.
llvm::ArrayRef<Fault> faults();

} // namespace mtc::test

#endif
