/* SPDX-License-Identifier: Apache-2.0 */
/* glibc has it since 2.36, and what is linked statically is for older ones too. libstdc++ and LLVM refer to it. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0)
    abort();
  return value;
}
