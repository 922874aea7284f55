// SPDX-License-Identifier: Apache-2.0
//
// Precompiled header of everything that includes the dialects.
#ifndef DIALECTS_ALL_H
#define DIALECTS_ALL_H

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

#endif
