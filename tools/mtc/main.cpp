// SPDX-License-Identifier: Apache-2.0
//
// mtc: compiles models, prints plans. A client of mtc.h.
#include "runtime/abi/mtc.h"
#include "tools/mtc/Arguments.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

namespace {

using Status = std::unique_ptr<mt_status, decltype(&mt_status_free)>;
using Result = std::unique_ptr<mtc_result, decltype(&mtc_result_free)>;

Status wrap(mt_status *status) { return {status, mt_status_free}; }

int report(mt_code code, const std::string &message) {
  // Messages about the model carry their place and severity already.
  bool located = message.find(": error: ") != std::string::npos;
  std::fprintf(stderr, "%s%s\n", located ? "" : "error: ", message.c_str());
  return code;
}

int report(const Status &status) { return report(mt_status_code(status.get()), mt_status_message(status.get())); }

int systemError(const char *what, const std::string &path) {
  return report(MT_IO, std::string(what) + " " + path + ": " + std::strerror(errno));
}

int readAll(const std::string &path, std::string &bytes) {
  bool standard = path == "-";
  std::FILE *file = standard ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return systemError("cannot open", path);
  char block[1 << 16];
  errno = 0;
  for (size_t count; (count = std::fread(block, 1, sizeof(block), file)) > 0;)
    bytes.append(block, count);
  int code = std::ferror(file) ? systemError("cannot read", standard ? "standard input" : path) : 0;
  if (!standard)
    std::fclose(file);
  return code;
}

int writeStandardOutput(const mtc_result *result) {
  size_t size = mtc_result_size(result);
  bool written = std::fwrite(mtc_result_data(result), 1, size, stdout) == size && std::fflush(stdout) == 0;
  return written ? 0 : systemError("cannot write", "standard output");
}

int writeResult(const mtc_result *result, const std::string &path) {
  if (path == "-")
    return writeStandardOutput(result);
  Status status = wrap(mtc_result_save(result, path.c_str()));
  return status ? report(status) : 0;
}

void printLog(void *, int, const char *message) { std::fprintf(stderr, "%s\n", message); }

const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

// MODEL with .mtp, or with .STAGE.mlir for text.
std::string defaultOutput(const Arguments &arguments) {
  if (arguments.input == "-" )
    return "-";
  size_t slash = arguments.input.rfind('/'), dot = arguments.input.rfind('.');
  bool ending = dot != std::string::npos && dot != 0 && (slash == std::string::npos || dot > slash + 1);
  std::string stem = ending ? arguments.input.substr(0, dot) : arguments.input;
  return arguments.stopAfter.empty() ? stem + ".mtp" : "-";
}

int compile(const Arguments &arguments) {
  auto start = std::chrono::steady_clock::now();
  mtc_options options = {};
  options.batch = arguments.batch;
  options.replicas = arguments.replicas;
  options.fast = arguments.mode == "fast";
  options.target = orNull(arguments.target);
  options.cpu = orNull(arguments.cpu);
  options.seed = arguments.seed;
  options.device_memory = arguments.deviceMemory;
  options.stop_after = orNull(arguments.stopAfter);
  options.dump_stages = orNull(arguments.dumpStages);
  options.timing = arguments.timing;
  options.log = printLog;

  mtc_result *made = nullptr;
  Status status(nullptr, mt_status_free);
  if (arguments.input == "-") {
    std::string text;
    if (int code = readAll("-", text))
      return code;
    status = wrap(mtc_compile_text(text.data(), text.size(), "<stdin>", &options, &made));
  } else {
    status = wrap(mtc_compile_file(arguments.input.c_str(), &options, &made));
  }
  Result result(made, mtc_result_free);
  if (status)
    return report(status);
  std::string output = arguments.output.empty() ? defaultOutput(arguments) : arguments.output;
  if (int code = writeResult(result.get(), output))
    return code;
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (output != "-")
    std::fprintf(stderr, "%s: %zu bytes in %.2f s\n", output.c_str(), mtc_result_size(result.get()), seconds.count());
  return 0;
}

int inspect(const Arguments &arguments) {
  std::string plan;
  if (int code = readAll(arguments.input, plan))
    return code;
  mtc_result *made = nullptr;
  Status status = wrap(mtc_inspect(plan.data(), plan.size(), arguments.json, &made));
  Result result(made, mtc_result_free);
  if (status)
    return report(mt_status_code(status.get()), arguments.input + ": " + mt_status_message(status.get()));
  return writeStandardOutput(result.get());
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  int exitCode = 0;
  if (!parseArguments(argc, argv, arguments, exitCode))
    return exitCode;
  return arguments.command == Command::Inspect ? inspect(arguments) : compile(arguments);
}
