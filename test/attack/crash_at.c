/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: the process crashes at its first write to the standard error output that has the text of CRASH_AT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t write(int descriptor, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real)
    real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  const char *text = getenv("CRASH_AT");
  if (descriptor == STDERR_FILENO && text && memmem(data, size, text, strlen(text)))
    raise(SIGSEGV);
  return real(descriptor, data, size);
}
