/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by kills.py: a disk whose fsync takes SLOW_FSYNC_MS milliseconds, so that a save takes as long as on one
 * that spins.
 * By renames.py: the process is killed before its rename or link number DIE_BEFORE_RENAME, or after number
 * DIE_AFTER_RENAME. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

static atomic_int renames;

static int numberIn(const char *variable) {
  const char *text = getenv(variable);
  return text ? atoi(text) : 0;
}

static void dieAt(const char *variable, int number) {
  if (numberIn(variable) == number)
    kill(getpid(), SIGKILL);
}

VISIBLE int fsync(int descriptor) {
  static int (*real)(int);
  if (!real)
    real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  long ms = numberIn("SLOW_FSYNC_MS");
  struct timespec delay = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&delay, 0);
  return real(descriptor);
}

VISIBLE int rename(const char *from, const char *to) {
  int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  int number = ++renames;
  dieAt("DIE_BEFORE_RENAME", number);
  int result = real(from, to);
  dieAt("DIE_AFTER_RENAME", number);
  return result;
}

// A file that has had no name gets one.
VISIBLE int linkat(int fromFolder, const char *from, int toFolder, const char *to, int flags) {
  int (*real)(int, const char *, int, const char *, int) =
      (int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
  int number = ++renames;
  dieAt("DIE_BEFORE_RENAME", number);
  int result = real(fromFolder, from, toFolder, to, flags);
  dieAt("DIE_AFTER_RENAME", number);
  return result;
}

VISIBLE int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned int flags) {
  int (*real)(int, const char *, int, const char *, unsigned int) =
      (int (*)(int, const char *, int, const char *, unsigned int))dlsym(RTLD_NEXT, "renameat2");
  int number = ++renames;
  dieAt("DIE_BEFORE_RENAME", number);
  int result = real(fromFolder, from, toFolder, to, flags);
  dieAt("DIE_AFTER_RENAME", number);
  return result;
}
