// SPDX-License-Identifier: Apache-2.0
//
// The command mtrun train: its outputs, its progress, and its end by signals.
#include "tools/mtrun/Commands.h"
#include "tools/mtrun/Events.h"
#include "tools/mtrun/Messages.h"
#include "tools/mtrun/Outputs.h"
#include "tools/mtrun/Processes.h"
#include "tools/mtrun/Progress.h"
#include "tools/mtrun/Report.h"
#include "tools/mtrun/Run.h"
#include "tools/mtrun/Supervision.h"
#include "tools/mtrun/Trace.h"
#include "tools/mtrun/Worker.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace mtrun_tool {

constexpr int64_t untracedSteps = 10; // number of steps before a trace without a range
// minimum share of waiting for data, and minimum seconds of training, for a note
constexpr double worthTelling = 0.02, longEnough = 1;

static volatile sig_atomic_t signalsSeen = 0, endsNext = 0; // endsNext: the next signal ends the process

// The first signal requests an end after the current step and its save; the second ends the process by its default
// action.
static void onSignal(int number) {
  signalsSeen = 1;
  if (endsNext == 0) {
    endsNext = 1;
    return;
  }
  signal(number, SIG_DFL);
  raise(number);
}

// The reader of standard output has ended, as with `| head`. Later writes fail, and the run stops as after a signal.
static void onPipe(int) {
  signalsSeen = 1;
  endsNext = 1;
}

// Somebody may send the same signal to this process and to the launcher's process, which passes it on.
static void onStop(int) {
  signalsSeen = 1;
  limitOrphan();
}

static void catchSignals() {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before;
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN)
      continue; // an ignored signal (nohup) stays ignored
    struct sigaction action = {};
    action.sa_handler = number == SIGPIPE ? onPipe : onSignal;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
  struct sigaction stop = {};
  stop.sa_handler = onStop;
  stop.sa_flags = SA_RESTART;
  sigaction(stopSignal, &stop, nullptr);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, stopSignal);
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
}

static int stopAsked(void *) { return signalsSeen != 0; }

namespace {

// The receivers of each step's progress.
struct Logs {
  Progress progress;
  std::unique_ptr<EventLog> events; // may be null
  Report *report = nullptr;
};

} // namespace

static int logStep(void *user, const mtrun_progress *progress) {
  auto *logs = static_cast<Logs *>(user);
  std::string problem = logs->events ? logs->events->update(*progress) : "";
  if (!problem.empty()) { // a run of hours does not end because of a log
    fprintf(stderr, "mtrun: warning: %s; continuing without event files\n", problem.c_str());
    logs->events.reset();
  }
  logs->report->update(*progress);
  return showProgress(&logs->progress, progress);
}

// Prints lines between progress lines; with --json they go to standard error.
static void showNote(void *user, const char *message) {
  if (static_cast<const Arguments *>(user)->session.process > 0)
    return; // process 0 prints it
  std::string line = std::string(message) + "\n";
  if (static_cast<const Arguments *>(user)->json)
    fputs(line.c_str(), stderr);
  else
    print(line);
}

static void checkTogether(const Arguments &arguments, const Outputs &outputs) {
  bool best = arguments.loop.epoch_best_only != 0;
  if (outputs.epochFile.empty() && arguments.session.process == 0 && (best || arguments.loop.epoch_weights_only))
    throw Failure{MT_INVALID, std::string(best ? "--best-only" : "--weights-only") +
                                  ": expected a file per epoch (--epoch-file PATTERN), found none"};
  if (arguments.learningRate && *arguments.learningRate == 0)
    throw Failure{MT_INVALID, "--learning-rate: expected a number above 0, found 0"};
}

static const char *pointer(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

// Returns the number of steps, including validation, of each of the plan's lengths; "" if it has one length.
static std::string lengthSteps(const Run &run) {
  std::string text;
  for (int32_t i = 0; i < mtrun_plan_length_count(run.plan.get()); ++i)
    text += (i ? ", " : "steps of each length: ") + std::to_string(mtrun_plan_length(run.plan.get(), i)) + ": " +
            std::to_string(mtrun_session_length_steps(run.session.get(), i));
  return text;
}

static int finish(const Run &run, const Arguments &arguments, const Outputs &outputs, const mtrun_fit_result &result) {
  if (!outputs.save.empty())
    check(mtrun_save(run.session.get(), outputs.save.c_str()));
  char text[128];
  snprintf(text, sizeof text, "the devices waited for data %.0f%% of the time", 100 * result.input_wait);
  if (result.input_wait >= worthTelling && result.seconds >= longEnough)
    showNote(const_cast<Arguments *>(&arguments), text);
  if (std::string lengths = lengthSteps(run); !lengths.empty())
    showNote(const_cast<Arguments *>(&arguments), lengths.c_str());
  if (result.stopped) {
    std::string where = result.saved ? "; continue with --checkpoint " + outputs.checkpoints + " --resume auto"
                        : outputs.save.empty() ? "; to be able to continue, use --checkpoint DIR"
                                               : "; its variables are in " + outputs.save +
                                                     ", to be able to continue, use --checkpoint DIR";
    if (arguments.session.process == 0)
      reportError(interrupted, "stopped after step " + std::to_string(result.total_step) + where);
  }
  if (!outputs.folder.empty())
    showNote(const_cast<Arguments *>(&arguments), ("wrote " + outputs.folder).c_str());
  if (arguments.session.process > 0)
    return result.stopped ? interrupted : result.not_finite ? MT_INVALID : MT_OK;
  if (std::string profile = finishProfile(run, arguments); !profile.empty())
    showNote(const_cast<Arguments *>(&arguments), profile.c_str());
  finishTrace(run, arguments);
  if (result.stopped)
    return interrupted;
  return result.not_finite ? reportError(MT_INVALID, "a loss of validation was not finite, as the warnings say; all "
                                                     "that was asked for is written")
                           : MT_OK;
}

// Returns the number of training steps of this run without an early stop; 0: unknown.
static int64_t stepsToCome(const Run &run, const Arguments &arguments, const mtrun_dataset *data) {
  int64_t size = mtrun_dataset_size(data), batch = mtrun_plan_batch(run.plan.get());
  const mtrun_loop_options &loop = arguments.loop;
  int64_t each = loop.steps_per_epoch                  ? loop.steps_per_epoch
                 : size < 0 || arguments.saving.resume ? 0
                                                       : (loop.drop_remainder ? size : size + batch - 1) / batch;
  int64_t epochs = loop.more_epochs ? loop.more_epochs : loop.epochs - loop.initial_epoch;
  return !arguments.saving.resume ? each * std::max<int64_t>(epochs, 0) : 0;
}

// Scales by the batch only: the number of devices changes no bits, so it does not change the rate.
static double rateScale(const Run &run, const Arguments &arguments) {
  if (arguments.lrScaling.empty())
    return 0;
  double ratio = static_cast<double>(mtrun_plan_batch(run.plan.get())) / static_cast<double>(arguments.baseBatch);
  return arguments.lrScaling == "sqrt" ? std::sqrt(ratio) : ratio;
}

static std::unique_ptr<EventLog> makeEvents(const Run &run, const Arguments &arguments) {
  auto events = std::make_unique<EventLog>(arguments.tensorboard, run.session.get());
  std::string text = describe(run, arguments), markdown;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    markdown += "    " + text.substr(at, end - at) + "\n";
  }
  markdown += "\n| | |\n|---|---|\n";
  auto row = [&](const char *what, const std::string &value) {
    if (!value.empty())
      markdown += std::string("| ") + what + " | " + value + " |\n";
  };
  mtrun_session_info info;
  mtrun_session_get_info(run.session.get(), &info);
  row("data", arguments.data);
  row("validation", arguments.validation);
  row("epochs", std::to_string(arguments.loop.epochs));
  row("seed", std::to_string(info.seed));
  row("variables", std::to_string(info.variables_bytes) + " bytes");
  events->describe(run.plan.get(), markdown);
  return events;
}

// Returns a line of JSON: the shards and rows that each process computed, and the bytes that it received. "" if there
// is one process, or on GPUs. All processes must call it.
static std::string describeProcesses(const Run &run) {
  mtrun_session_info info;
  mtrun_session_get_info(run.session.get(), &info);
  std::vector<mtrun_activity> activities(static_cast<size_t>(info.processes));
  if (info.processes > 1)
    check(mtrun_session_activities(run.session.get(), activities.data()));
  std::string text;
  for (size_t process = 0; process < activities.size() && activities[0].rows > 0 && info.processes > 1; ++process)
    text += (process ? ", " : "{\"processes\": [") + std::string("{\"process\": ") + std::to_string(process) +
            ", \"shards\": " + std::to_string(activities[process].shards) +
            ", \"rows\": " + std::to_string(activities[process].rows) +
            ", \"received_bytes\": " + std::to_string(activities[process].received_bytes) +
            ", \"read_bytes\": " + std::to_string(activities[process].read_bytes) +
            ", \"pictures\": " + std::to_string(activities[process].pictures) + "}";
  return text.empty() ? "" : text + "]}\n";
}

// After the loss of a process of CPU devices: libraries of MPI may wait for it while they end.
static void endIfLost(const Arguments &arguments, const Failure &failure) {
  if (failure.code != MT_LOST || arguments.session.processes < 2 || isOnGpus(arguments))
    return;
  fflush(stdout);
  std::string who = arguments.session.process ? "process " + std::to_string(arguments.session.process) + ": " : "";
  _exit(reportError(failure.code, who + failure.message));
}

// Saves the variables even if the last checkpoint could not be written, because training is complete.
static int fit(const Run &run, const Arguments &arguments, const Outputs &outputs, mtrun_dataset *data,
               mtrun_loop_options &options, Report &report) try {
  mtrun_fit_result result = {};
  result.total_step = -1; // until training is complete
  options.result = &result;
  std::unique_ptr<mt_status, decltype(&mt_status_free)> status(mtrun_fit(run.session.get(), data, &options),
                                                               mt_status_free);
  if (result.total_step < 0)
    check(status.release());
  std::string processes = describeProcesses(run);
  if (arguments.json && arguments.session.process == 0)
    print(processes);
  int code = finish(run, arguments, outputs, result);
  check(status.release());
  report.end(result);
  return code;
} catch (const Failure &failure) {
  report.fail(failure.message);
  endIfLost(arguments, failure);
  throw;
}

int train(const Arguments &arguments) {
  Outputs outputs(arguments);
  checkTogether(arguments, outputs);
  catchSignals();
  if (arguments.session.process == 0)
    obeySupervisor();
  Run run = loadPlan(arguments);
  outputs.begin(run);
  bind(run, arguments);
  DatasetPtr data = openData(run, arguments, arguments.data), validation;
  if (!arguments.validation.empty())
    validation = openData(run, arguments, arguments.validation);
  if (!outputs.folder.empty())
    showNote(const_cast<Arguments *>(&arguments), ("run " + outputs.folder).c_str());
  bool first = arguments.session.process == 0;
  if (!arguments.json && first)
    print(describe(run, arguments));
  Report report(run, arguments, outputs, mtrun_dataset_size(data.get()));
  Logs logs = {makeProgress(arguments), nullptr, &report};
  if (!arguments.tensorboard.empty() && first)
    logs.events = makeEvents(run, arguments);
  mtrun_checkpoint_options checkpoint = arguments.saving;
  checkpoint.folder = pointer(outputs.checkpoints);
  mtrun_loop_options options = arguments.loop;
  options.validation = validation.get();
  options.progress = first ? logStep : nullptr;
  options.progress_user = &logs;
  options.checkpoint = checkpoint.folder || checkpoint.resume || checkpoint.rescue ? &checkpoint : nullptr;
  options.history_json = pointer(outputs.json);
  options.history_csv = pointer(outputs.csv);
  options.rate_scale = rateScale(run, arguments);
  options.epoch_file = pointer(outputs.epochFile);
  options.learning_rate = arguments.learningRate.value_or(0);
  options.stop = stopAsked;
  options.note = showNote;
  options.note_user = const_cast<Arguments *>(&arguments);
  options.in_flight = 1;
  std::string launches = "launches-" + std::to_string(options.hash_launches) + ".mtl";
  if (options.hash_launches && !options.launch_file)
    options.launch_file = launches.c_str();
  if (first)
    startTrace(run, arguments, arguments.saving.resume ? 0 : untracedSteps, stepsToCome(run, arguments, data.get()));
  return fit(run, arguments, outputs, data.get(), options, report);
}

} // namespace mtrun_tool
