# SPDX-License-Identifier: Apache-2.0
#
# `cpack -G TZST` makes an archive of everything, for systems that have neither .deb nor wheels.
set(CPACK_PACKAGE_NAME mtc)
set(CPACK_PACKAGE_VENDOR MTC)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
if(NOT MTC_PACKAGES STREQUAL "deb") # there symbols go to packages of their own
  set(CPACK_STRIP_FILES ON)
endif()
set(CPACK_ARCHIVE_FILE_EXTENSION .tar.zst)
include(CPack)
