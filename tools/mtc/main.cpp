// SPDX-License-Identifier: Apache-2.0
//
// The program mtc: compiles models and prints plans, through the C API in mtc.h.
#include "runtime/abi/mtc.h"
#include "tools/commandline/OutputFolders.h"
#include "tools/mtc/Arguments.h"
#include "tools/mtc/Crash.h"

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
  // Messages about a model already have a location and a severity.
  bool located = message.find(": error: ") != std::string::npos;
  std::fprintf(stderr, "%s%s\n", located ? "" : "mtc: error: ", message.c_str());
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

// Called before any computation.
int prepare(commandline::OutputFolders &folders, const std::string &path) {
  std::string problem = folders.prepareFile(path);
  return problem.empty() ? 0 : report(MT_IO, problem);
}

void printLog(void *, int, const char *message) { std::fprintf(stderr, "%s\n", message); }

// Returns `path` with another extension.
std::string withEnding(const std::string &path, const char *ending) {
  size_t slash = path.rfind('/'), dot = path.rfind('.');
  bool has = dot != std::string::npos && dot != 0 && (slash == std::string::npos || dot > slash + 1);
  return (has ? path.substr(0, dot) : path) + ending;
}

// Returns the default output: MODEL with .mtp, or standard output for text.
std::string defaultOutput(const Arguments &arguments) {
  return arguments.input == "-" || arguments.options.stop_after ? "-" : withEnding(arguments.input, ".mtp");
}

// A model file has no Python code, and its importer supports fewer layers and losses than a trace of the Python model.
int reportModel(const std::string &input, const Status &status) {
  int code = report(status);
  bool keras = input.ends_with(".keras") || input.ends_with(".json");
  if (keras && mt_status_code(status.get()) == MT_INVALID &&
      !std::strstr(mt_status_message(status.get()), "keras-traces.md"))
    std::fprintf(stderr, "mtc: note: in Python, mtc.compile(model) and mtc.fit(model, ...) trace the model if its "
                         "file is refused (docs/keras-traces.md)\n");
  return code;
}

// Calls the API for a model in a file, or for text from standard input.
int fromModel(const Arguments &arguments, decltype(&mtc_compile_text) ofText, decltype(&mtc_compile_file) ofFile,
              Result &result) {
  mtc_result *output = nullptr;
  Status status(nullptr, mt_status_free);
  if (arguments.input == "-") {
    std::string text;
    if (int code = readAll("-", text))
      return code;
    status = wrap(ofText(text.data(), text.size(), "<stdin>", &arguments.options, &output));
  } else {
    status = wrap(ofFile(arguments.input.c_str(), &arguments.options, &output));
  }
  result.reset(output);
  return status ? reportModel(arguments.input, status) : 0;
}

// Standard input cannot be read again.
void handleCrashes(int argc, char **argv, const Arguments &arguments, int crash) {
  if (arguments.input == "-")
    return;
  if (!crash)
    return ::handleCrashes(argc, argv);
  reportCrash(crash, [&](const char *folder) {
    Arguments again = arguments;
    again.options.dump_stages = folder;
    Result result(nullptr, mtc_result_free);
    fromModel(again, mtc_compile_text, mtc_compile_file, result);
  });
}

int compile(const Arguments &arguments) {
  auto start = std::chrono::steady_clock::now();
  std::string output = arguments.output.empty() ? defaultOutput(arguments) : arguments.output;
  commandline::OutputFolders folders;
  if (int code = prepare(folders, output))
    return code;
  const char *stages = arguments.options.dump_stages;
  if (std::string problem = stages ? folders.prepareFolder(stages) : ""; !problem.empty())
    return report(MT_IO, problem);
  Result result(nullptr, mtc_result_free);
  if (int code = fromModel(arguments, mtc_compile_text, mtc_compile_file, result))
    return code;
  if (int code = writeResult(result.get(), output))
    return code;
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (output != "-")
    std::fprintf(stderr, "%s: %zu bytes in %.2f s\n", output.c_str(), mtc_result_size(result.get()), seconds.count());
  return 0;
}

int importModel(const Arguments &arguments) {
  std::string output = arguments.output.empty() ? withEnding(arguments.input, ".mlir") : arguments.output;
  std::string weightsFile = output == "-" ? "" : withEnding(output, ".safetensors");
  commandline::OutputFolders folders;
  for (const std::string &path : {output, weightsFile})
    if (int code = prepare(folders, path))
      return code;
  mtc_result *madeText = nullptr, *madeWeights = nullptr;
  Status status = wrap(mtc_import_file(arguments.input.c_str(), &arguments.options, &madeText, &madeWeights));
  Result text(madeText, mtc_result_free), weights(madeWeights, mtc_result_free);
  if (status)
    return report(status);
  if (int code = writeResult(text.get(), output))
    return code;
  return weights && !weightsFile.empty() ? writeResult(weights.get(), weightsFile) : 0;
}

int inspect(const Arguments &arguments) {
  commandline::OutputFolders folders;
  if (int code = prepare(folders, arguments.output))
    return code;
  std::string plan, trace, against;
  if (int code = readAll(arguments.input, plan))
    return code;
  if (int code = arguments.trace.empty() ? 0 : readAll(arguments.trace, trace))
    return code;
  if (int code = arguments.against.empty() ? 0 : readAll(arguments.against, against))
    return code;
  if (!arguments.gpu.empty() && against.empty() && (arguments.html || !trace.empty()))
    return report(MT_INVALID, "--gpu: with --html and --trace expected --against PLAN, found none");
  mtc_inspect_options options = mtc_inspect_options_init();
  options.html = arguments.html;
  options.trace = arguments.trace.empty() ? nullptr : trace.data();
  options.trace_size = trace.size();
  options.against = arguments.against.empty() ? nullptr : against.data();
  options.against_size = against.size();
  options.name = arguments.input.c_str();
  options.against_name = arguments.against.c_str();
  options.gpu = arguments.gpu.empty() ? nullptr : arguments.gpu.c_str();
  options.hosts = arguments.hosts.empty() ? nullptr : arguments.hosts.c_str();
  options.cpu = arguments.hostCpu.empty() ? nullptr : arguments.hostCpu.c_str();
  options.network = arguments.network.empty() ? nullptr : arguments.network.c_str();
  mtc_result *output = nullptr;
  Status status = wrap(
      options.trace || options.against || options.hosts ? mtc_inspect_with(plan.data(), plan.size(), &options, &output)
      : !arguments.gpu.empty() ? mtc_inspect_gpus(plan.data(), plan.size(), arguments.gpu.c_str(), &output)
      : arguments.inspectDevices
          ? mtc_inspect_devices(plan.data(), plan.size(), *arguments.inspectDevices, arguments.html, &output)
      : arguments.html ? mtc_inspect_html(plan.data(), plan.size(), &output)
                       : mtc_inspect(plan.data(), plan.size(), arguments.json, &output));
  Result result(output, mtc_result_free);
  if (status)
    return report(mt_status_code(status.get()), arguments.input + ": " + mt_status_message(status.get()));
  return writeResult(result.get(), arguments.output.empty() ? "-" : arguments.output);
}

int summarize(const Arguments &arguments) {
  Result result(nullptr, mtc_result_free);
  if (int code = fromModel(arguments, mtc_summary_text, mtc_summary_file, result))
    return code;
  return writeStandardOutput(result.get());
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  int exitCode = 0, crash = takeCrash(argc, argv);
  if (!parseArguments(argc, argv, arguments, exitCode))
    return exitCode;
  arguments.options.log = printLog;
  if (Status wrong = wrap(mtc_options_check(&arguments.options))) {
    bool usage = mt_status_code(wrong.get()) == MT_INVALID;
    return report(usage ? MT_USAGE : mt_status_code(wrong.get()), mt_status_message(wrong.get()));
  }
  switch (arguments.command) {
  case Command::Import:
    return importModel(arguments);
  case Command::Inspect:
    return inspect(arguments);
  case Command::Summary:
    return summarize(arguments);
  case Command::Compile:
    break;
  }
  handleCrashes(argc, argv, arguments, crash);
  return crash ? 0 : compile(arguments);
}
