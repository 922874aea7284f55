/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by test/attack/run: a disk that fails. DISK_FAULT=CALL:N:WHAT, CALL one of write, fsync, link, rename,
 * close, and unnamed, which opens a file without a name; N the number of the first call that fails, from 1; WHAT a name
 * of an error (EIO, ENOSPC, EINTR, EPERM), "short" (takes one byte), "zero" (takes nothing and says so) for writes;
 * with a + behind it all calls from there on. Calls count for regular files and folders alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static atomic_int calls;

/* 0: all is well; an error; -1: short; -2: nothing. */
static int fault(const char *call) {
  const char *text = getenv("DISK_FAULT");
  size_t length = strlen(call);
  if (!text || strncmp(text, call, length) != 0 || text[length] != ':')
    return 0;
  char *what = 0;
  int first = (int)strtol(text + length + 1, &what, 10), now = atomic_fetch_add(&calls, 1) + 1;
  if (now < first || (now > first && text[strlen(text) - 1] != '+'))
    return 0;
  const struct {
    const char *name;
    int value;
  } known[] = {{":EIO", EIO},     {":ENOSPC", ENOSPC}, {":EINTR", EINTR},
               {":EPERM", EPERM}, {":short", -1},      {":zero", -2}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strncmp(what, known[i].name, strlen(known[i].name)) == 0)
      return known[i].value;
  return EIO;
}

static int on_disk(int descriptor) {
  struct stat facts;
  char link[40], name[8] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  return readlink(link, name, sizeof name) > 0 && strncmp(name, "/memfd:", 7) != 0 && fstat(descriptor, &facts) == 0 &&
         (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));
}

EXPORTED int open64(const char *path, int flags, ...) {
  static int (*real)(const char *, int, ...);
  if (!real)
    real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  int found = (flags & O_TMPFILE) == O_TMPFILE ? fault("unnamed") : 0;
  return found ? (errno = found, -1) : real(path, flags, mode);
}

EXPORTED int open(const char *path, int flags, ...) __attribute__((alias("open64")));

EXPORTED int linkat(int a, const char *from, int b, const char *to, int flags) {
  static int (*real)(int, const char *, int, const char *, int);
  if (!real)
    real = (int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
  int found = fault("link");
  return found ? (errno = found, -1) : real(a, from, b, to, flags);
}

EXPORTED ssize_t write(int descriptor, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real)
    real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  int found = on_disk(descriptor) ? fault("write") : 0;
  if (found == -2)
    return 0;
  if (found > 0)
    return errno = found, -1;
  return real(descriptor, data, found == -1 && size > 1 ? 1 : size);
}

EXPORTED int fsync(int descriptor) {
  static int (*real)(int);
  if (!real)
    real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  int found = fault("fsync");
  return found ? (errno = found, -1) : real(descriptor);
}

EXPORTED int close(int descriptor) {
  static int (*real)(int);
  if (!real)
    real = (int (*)(int))dlsym(RTLD_NEXT, "close");
  int found = on_disk(descriptor) ? fault("close") : 0, result = real(descriptor);
  return found ? (errno = found, -1) : result;
}

EXPORTED int rename(const char *from, const char *to) {
  static int (*real)(const char *, const char *);
  if (!real)
    real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  int found = fault("rename");
  return found ? (errno = found, -1) : real(from, to);
}

EXPORTED int renameat(int a, const char *from, int b, const char *to) {
  static int (*real)(int, const char *, int, const char *);
  if (!real)
    real = (int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat");
  int found = fault("rename");
  return found ? (errno = found, -1) : real(a, from, b, to);
}
