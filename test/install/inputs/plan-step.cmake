# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.16)
project(host LANGUAGES NONE)
find_package(MTC 0.1 CONFIG REQUIRED COMPONENTS compiler)
mtc_add_plan(line linear.mlir BATCH 16 SHARDS 4 TARGET cpu OPTIONS --mode fast DEPENDS extra ALL)
