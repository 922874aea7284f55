// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Messages.h"

#include <cerrno>
#include <cstdio>

namespace mtrun_tool {

int reportError(int code, const std::string &message) {
  size_t start = 0;
  while (start <= message.size()) {
    size_t end = std::min(message.find('\n', start), message.size());
    std::string line = message.substr(start, end - start);
    for (char &c : line)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) // control characters, which may come from a file
        c = '?';
    fprintf(stderr, "mtrun: error: %s\n", line.c_str());
    start = end + 1;
  }
  return code;
}

static int firstOutputError = 0;

void print(const std::string &text) {
  errno = 0;
  bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((fflush(stdout) != 0 || !written) && firstOutputError == 0)
    firstOutputError = errno ? errno : EIO;
}

int outputError() { return firstOutputError; }

} // namespace mtrun_tool
