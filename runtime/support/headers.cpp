// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/headers.h"
