// SPDX-License-Identifier: Apache-2.0
//
// Precompiled: what tests of the runtime include.
#ifndef TEST_UNIT_HEADERS_H
#define TEST_UNIT_HEADERS_H

#include "runtime/support/headers.h"

#include <gtest/gtest.h>

#endif
