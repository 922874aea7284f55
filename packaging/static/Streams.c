/* SPDX-License-Identifier: Apache-2.0 */
/* What HDF5's archive calls stderr and stdout, see CMakeLists.txt. */
#include <stdio.h>

FILE *static_stderr, *static_stdout;

__attribute__((constructor)) static void set(void) {
  static_stderr = stderr;
  static_stdout = stdout;
}
