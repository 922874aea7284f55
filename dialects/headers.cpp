// SPDX-License-Identifier: Apache-2.0
#include "dialects/headers.h"
