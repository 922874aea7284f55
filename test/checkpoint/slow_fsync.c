/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by kills.py: a disk whose fsync takes SLOW_FSYNC_MS milliseconds, so that a save takes as long as on one that spins. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

__attribute__((visibility("default"))) int fsync(int descriptor) {
  static int (*real)(int);
  if (!real)
    real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  const char *text = getenv("SLOW_FSYNC_MS");
  long ms = text ? atol(text) : 0;
  struct timespec delay = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&delay, 0);
  return real(descriptor);
}
