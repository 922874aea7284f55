# SPDX-License-Identifier: Apache-2.0
#
# The kinds of kernels are listed once, as the enumerators of plan.fbs. An enumerator there, `ScatterAdd = 9`, is here
# I32EnumAttrCase<"scatter_add", 9> of KernelKinds.td, which makes the IR's enum (MtBase.td), and
# KIND(scatter_add, scatterAdd, ScatterAdd) of KernelKinds.def, for declarations and tables in C++.
set(schema ${CMAKE_SOURCE_DIR}/runtime/abi/plan.fbs)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema})
file(READ ${schema} text)
string(REGEX MATCH "enum KernelKind[^}]*" text "${text}")
string(REGEX MATCHALL "[A-Za-z0-9]+ = [0-9]+" enumerators "${text}")
if(NOT enumerators)
  message(FATAL_ERROR "expected the enumerators of KernelKind in ${schema}, found none")
endif()
foreach(enumerator IN LISTS enumerators)
  string(REGEX MATCH "^[A-Za-z0-9]+" Name "${enumerator}")
  string(REGEX MATCH "[0-9]+$" number "${enumerator}")
  string(SUBSTRING "${Name}" 0 1 first)
  string(TOLOWER "${first}" first)
  string(REGEX REPLACE "^.(.*)" "${first}\\1" name "${Name}")
  string(REGEX REPLACE "([A-Z])" "_\\1" kind "${name}") # as runtime/trace/Profile.cpp writes it
  string(TOLOWER "${kind}" kind)
  list(APPEND cases "I32EnumAttrCase<\"${kind}\", ${number}>")
  string(APPEND rows "KIND(${kind}, ${name}, ${Name})\n")
endforeach()
list(JOIN cases ",\n  " cases)
file(CONFIGURE OUTPUT KernelKinds.td CONTENT "defvar kernelKinds = [\n  ${cases}];\n")
file(CONFIGURE OUTPUT KernelKinds.def CONTENT "${rows}#undef KIND\n")
