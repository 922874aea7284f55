// SPDX-License-Identifier: Apache-2.0
//
// The program mtrun: selects the command and reports failures.
#include "runtime/abi/mtrun.h"
#include "tools/commandline/CommandLine.h"
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Compiler.h"
#include "tools/mtrun/Hints.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Options.h"
#include "tools/mtrun/Processes.h"
#include "tools/mtrun/Run.h"
#include "tools/mtrun/Supervise.h"
#include "tools/mtrun/Worker.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>

using namespace mtrun_tool;

static const char *const exitCodes =
    R"(Exit codes: 0 success; 1 a wrong model, data or argument; 2 a wrong command line; 3 a damaged plan or
data file, or one of another version; 4 out of memory; 5 a device does not start or the plan has no code for it; 7 a
file that cannot be read or written; 8 no such device; 9 a device or a process that was lost in the run; 10 a difference
that verify or diff has found; 75 stopped by a signal, and saved)";

using Command = int (*)(const Arguments &);

static Command commandOf(const std::string &name) {
  return name == "train"       ? train
         : name == "evaluate"  ? evaluate
         : name == "predict"   ? predict
         : name == "export"    ? exportModel
         : name == "benchmark" ? benchmark
         : name == "data"      ? data
         : name == "tune"      ? tune
         : name == "verify"    ? verify
         : name == "diff"      ? diff
                               : devices;
}

static int run(const std::string &name, Arguments &arguments, char **argv) {
  try {
    if (name == "supervise")
      return supervise(arguments);
    if (name == "diff" || name == "export")
      expectAlone(name);
    bool planless = name == "data" || name == "devices" || name == "diff" || !arguments.allReduces.empty();
    if (!planless)
      arguments.plan = planOf(arguments);
    if (arguments.devices.empty() && name != "diff")
      arguments.devices = name == "export" || planless ? "cpu:1" : defaultDevices(arguments.plan);
    if (name == "train" || name == "evaluate" || name == "benchmark" ||
        ((name == "predict" || name == "verify") && distinctGpus(arguments.devices).empty()))
      if (std::optional<int> code = distribute(arguments, argv))
        return *code;
    if (name == "train" && arguments.session.processes > 1 && !isOnGpus(arguments))
      if (std::optional<int> code = startWorker())
        return *code;
    std::optional<MpiGuard> guard;
    if (arguments.session.processes > 1)
      guard.emplace();
    int code = commandOf(name)(arguments);
    endOrphan(code);
    if (code == MT_OK && outputError() != 0)
      return reportError(MT_IO, std::string("cannot write standard output: ") + strerror(outputError()));
    return code;
  } catch (const Failure &failure) {
    fflush(stdout);
    std::string who = arguments.session.process ? "process " + std::to_string(arguments.session.process) + ": " : "";
    reportError(failure.code, who + failure.message);
    endOthers(arguments, failure);
    endOrphan(failure.code);
    return failure.code;
  }
}

int main(int argc, char **argv) {
  CLI::App app("mtrun: runs plans that mtc made, on one or more devices, to the same bits on any number of them",
               "mtrun");
  Arguments arguments;
  arguments.words.assign(argv, argv + argc);
  app.require_subcommand(1);
  app.footer(exitCodes);
  app.set_version_flag("--version", std::string("mtrun ") + mtrun_version());
  addCommands(app, arguments);
  int exitCode = 0;
  if (!commandline::parse(app, argc, argv, hints, exitCode))
    return exitCode;
  try {
    return run(app.get_subcommands().front()->get_name(), arguments, argv);
  } catch (const std::bad_alloc &) {                   // covers the report of a failure too
    return reportError(MT_NO_MEMORY, "out of memory"); // a short text is stored inside the string
  }
}
