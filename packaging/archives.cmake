# SPDX-License-Identifier: Apache-2.0
#
# `cpack -G TZST` makes an archive of everything, for systems that have neither .deb nor wheels.
set(CPACK_PACKAGE_NAME mtc)
set(CPACK_PACKAGE_VENDOR MTC)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_ARCHIVE_FILE_EXTENSION .tar.zst)
include(CPack)
