// SPDX-License-Identifier: Apache-2.0
//
// Precompiled: the dialects, for whatever is built on them.
#ifndef DIALECTS_ALL_H
#define DIALECTS_ALL_H

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

#endif
