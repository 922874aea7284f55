// SPDX-License-Identifier: Apache-2.0
//
// The plan dialect: buffers and launches (PlanOps.td).
#ifndef DIALECTS_PLAN_PLANDIALECT_H
#define DIALECTS_PLAN_PLANDIALECT_H

#include "dialects/headers.h"
#include "dialects/mt/MtDialect.h" // enums of kernels and variables

#include "dialects/plan/PlanDialect.h.inc"
#include "dialects/plan/PlanEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

#endif
