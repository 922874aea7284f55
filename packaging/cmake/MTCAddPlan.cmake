# SPDX-License-Identifier: Apache-2.0
#
# mtc_add_plan(NAME MODEL [OUTPUT FILE] [BATCH B] [SHARDS S] [TARGET cpu,cuda] [OPTIONS --precision bf16...]
#              [DEPENDS FILE...] [ALL])
#
# Compiles MODEL, a .keras or .mlir file, into the plan FILE (NAME.mtp in the build folder) when the model, the compiler
# or a file of DEPENDS is newer. NAME is a target, whose property MTC_PLAN is the plan's path. OPTIONS are those of
# `mtc compile`. ALL: the plan is made by the default build.
function(mtc_add_plan name model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "ALL" "OUTPUT;BATCH;SHARDS;TARGET" "OPTIONS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "mtc_add_plan: expected OUTPUT, BATCH, SHARDS, TARGET, OPTIONS, DEPENDS or ALL with their "
                        "values, found ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT ${name}.mtp)
  endif()
  get_filename_component(model "${model}" ABSOLUTE)
  get_filename_component(plan "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  list(TRANSFORM arg_DEPENDS REPLACE "^([^/$].*)$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
  set(options ${arg_OPTIONS})
  foreach(option BATCH SHARDS TARGET)
    if(DEFINED arg_${option})
      string(TOLOWER --${option} flag)
      list(APPEND options ${flag} ${arg_${option}})
    endif()
  endforeach()
  add_custom_command(OUTPUT "${plan}"
    COMMAND "${MTC_EXECUTABLE}" compile "${model}" -o "${plan}" ${options}
    DEPENDS "${model}" "${MTC_EXECUTABLE}" ${arg_DEPENDS}
    COMMENT "Compiling the plan ${name}"
    VERBATIM)
  set(all)
  if(arg_ALL)
    set(all ALL)
  endif()
  add_custom_target(${name} ${all} DEPENDS "${plan}")
  set_target_properties(${name} PROPERTIES MTC_PLAN "${plan}")
endfunction()
