# SPDX-License-Identifier: Apache-2.0
#
# `cpack -G DEB`: a package for each component, which is named as the package. packaging/deb/build runs it.
set(release ${PROJECT_VERSION}-1)
set(CPACK_PACKAGE_CONTACT "MTC maintainers <maintainers@mtc.example>")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
if(TARGET libmtc)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LLVM_LIBRARY_DIR})
endif()

configure_file(${CMAKE_CURRENT_LIST_DIR}/changelog.in changelog @ONLY)
execute_process(COMMAND gzip -9nc ${CMAKE_CURRENT_BINARY_DIR}/changelog
                OUTPUT_FILE ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian.gz COMMAND_ERROR_IS_FATAL ANY)

# mtc_package(NAME SECTION [BINARIES] [DEPENDS PACKAGE...] [RECOMMENDS ...] [SUGGESTS ...] DESCRIPTION LINE...)
# DEPENDS: packages of this version; what libraries need of other packages is computed. BINARIES: with debug symbols
# apart.
function(mtc_package name section)
  cmake_parse_arguments(PARSE_ARGV 2 arg "BINARIES" "" "DEPENDS;RECOMMENDS;SUGGESTS;DESCRIPTION")
  string(TOUPPER ${name} key)
  list(JOIN arg_DESCRIPTION "\n" description)
  list(TRANSFORM arg_DEPENDS APPEND " (= ${release})")
  list(JOIN arg_DEPENDS ", " depends)
  list(JOIN arg_RECOMMENDS ", " recommends)
  list(JOIN arg_SUGGESTS ", " suggests)
  foreach(pair PACKAGE_NAME=${name} PACKAGE_SECTION=${section} "PACKAGE_DEPENDS=${depends}"
               "PACKAGE_RECOMMENDS=${recommends}" "PACKAGE_SUGGESTS=${suggests}")
    string(REGEX MATCH "^([A-Z_]+)=(.*)$" pair "${pair}")
    set(CPACK_DEBIAN_${key}_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" PARENT_SCOPE)
  endforeach()
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${description}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DEBUGINFO_PACKAGE ${arg_BINARIES} PARENT_SCOPE)
  if(NOT arg_BINARIES)
    set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS OFF PARENT_SCOPE)
  endif()
  if(section STREQUAL "doc")
    set(CPACK_DEBIAN_${key}_PACKAGE_ARCHITECTURE all PARENT_SCOPE)
  endif()
  list(APPEND CPACK_COMPONENTS_ALL ${name})
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
  install(FILES deb/copyright ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${name})
  set(overrides deb/overrides.in)
  if(section STREQUAL "libs")
    set(overrides deb/overrides-library.in)
    set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/deb/triggers PARENT_SCOPE)
  endif()
  configure_file(${overrides} overrides/${name} @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/overrides/${name}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${name})
endfunction()

mtc_package(libmtrun0 libs BINARIES RECOMMENDS "libmtrun-images0 (= ${release})" DESCRIPTION
  "runtime of the MTC training compiler - shared library"
  "libmtrun loads plans, which the compiler mtc makes of neural networks, and"
  "trains them on one or many devices, to the same bits on any number of them."
  "It has a C interface, and needs neither Python nor LLVM.")
mtc_package(libmtrun-images0 libs BINARIES DEPENDS libmtrun0 DESCRIPTION
  "runtime of the MTC training compiler - decoders of pictures"
  "libmtrun opens this library when training data are JPEG or PNG files.")
mtc_package(libmtrun-cuda0 libs BINARIES DEPENDS libmtrun0 RECOMMENDS libcuda1 DESCRIPTION
  "runtime of the MTC training compiler - NVIDIA GPUs"
  "libmtrun opens this library when a run asks for GPUs. It opens the driver of"
  "NVIDIA, and cuBLASLt, cuDNN and NCCL where they are installed.")
if(TARGET libmtrun-mpi-openmpi OR TARGET libmtrun-mpi-mpich OR TARGET libmtrun-mpi-standard)
  mtc_package(libmtrun-mpi0 libs BINARIES DEPENDS libmtrun0 SUGGESTS "openmpi-bin | mpich" DESCRIPTION
    "runtime of the MTC training compiler - CPUs of several processes"
    "libmtrun opens these libraries when mpirun or srun has started several"
    "processes with CPU devices. They open the launcher's Open MPI or MPICH, or a"
    "library of MPI's standard ABI.")
endif()
mtc_package(mtrun science BINARIES DEPENDS libmtrun0 SUGGESTS mtc libmtrun-cuda0 DESCRIPTION
  "trains plans of the MTC training compiler"
  "mtrun trains a plan on whole data sets, evaluates it, predicts with it, writes"
  "checkpoints and resumes them, and exports trained models.")
mtc_package(libmtrun-dev libdevel DEPENDS libmtrun0 SUGGESTS mtc-doc DESCRIPTION
  "runtime of the MTC training compiler - development files"
  "The headers mt.h, mtrun*.h and mtrun.hpp, the module mtrun.f90, the CMake"
  "package MTC and mtrun.pc: what a program in C, C++ or Fortran that trains plans"
  "is built with.")
mtc_package(mtc-doc doc DESCRIPTION
  "MTC training compiler - documentation and examples"
  "The manual, models to start with, programs in C, and a part of MNIST.")
if(TARGET libmtc)
  mtc_package(libmtc0 libs BINARIES DESCRIPTION
    "ahead-of-time compiler of neural network training - shared library"
    "libmtc compiles a model, a Keras file or MLIR text, into a plan for libmtrun."
    "A plan holds forward and backward pass, optimizer, memory layout and machine"
    "code. The library has a C interface.")
  # In LLVM's own folder is a link to it, of a package that says nothing about libraries.
  set(CPACK_DEBIAN_LIBMTC0_PACKAGE_DEPENDS libllvm22)
  mtc_package(mtc science BINARIES DEPENDS libmtc0 RECOMMENDS mtrun SUGGESTS mtc-doc DESCRIPTION
    "ahead-of-time compiler of neural network training"
    "mtc compiles a model, a Keras file or MLIR text, into a plan file that mtrun"
    "trains, to the same bits on any number of devices.")
  mtc_package(libmtc-dev libdevel DEPENDS libmtc0 libmtrun-dev mtc SUGGESTS mtc-doc DESCRIPTION
    "ahead-of-time compiler of neural network training - development files"
    "The header mtc.h, the CMake function mtc_add_plan and mtc.pc: what a program"
    "in C or C++ that compiles models is built with.")
endif()
