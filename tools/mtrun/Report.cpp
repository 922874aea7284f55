// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Report.h"

#include "runtime/support/atomic_file.h"
#include "runtime/support/html.h"
#include "tools/mtrun/Chart.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>
#include <sys/utsname.h>

namespace mtrun_tool {

using mtrun::append;

constexpr double writesPart = 50; // writing the page takes at most 1/writesPart of the time

static double steadyTime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static std::string quoted(const std::string &word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") ==
          std::string::npos)
    return word;
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string resumeCommand(const std::vector<std::string> &words, const std::string &folder, bool complete) {
  std::string command;
  bool placed = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    bool takesNext = word == "--resume" || word == "--more-epochs";
    i += takesNext;
    if (takesNext || word.starts_with("--resume=") || word.starts_with("--more-epochs=") || word == "--force")
      continue;
    for (const char *option : {"--run", "--checkpoint"})
      placed |= word == option || word.starts_with(std::string(option) + "=");
    command += quoted(word) + " ";
  }
  if (!placed)
    command += "--run " + quoted(folder) + " ";
  return command + "--resume auto" + (complete ? " --more-epochs 1" : "");
}

Report::Report(const Run &run, const Arguments &arguments, const Outputs &outputs, int64_t samples)
    : run_(run), arguments_(arguments), folder_(outputs.folder), history_(outputs.csv), began_(utcNow()),
      samples_(samples) {
  if (samples_ >= 0 && arguments.loop.validation_split > 0)
    samples_ = static_cast<int64_t>(static_cast<double>(samples_) * (1 - arguments.loop.validation_split));
  if (arguments.loop.steps_per_epoch || arguments.loop.drop_remainder)
    samples_ = -1; // all batches are full
}

void Report::warn(const std::string &problem) {
  if (!problem.empty() && !warned_)
    fprintf(stderr, "mtrun: warning: the report was not written: %s\n", problem.c_str());
  warned_ |= !problem.empty();
}

void Report::update(const mtrun_progress &progress) {
  if (folder_.empty())
    return;
  if (!begun_)
    begin(progress);
  if (progress.epoch != epoch_) {
    epoch_ = progress.epoch;
    firstStep_ = progress.step - !progress.epoch_end;
  }
  if (!progress.validation)
    training_ = progress.seconds;
  if (progress.epoch_end)
    return endEpoch(progress);
  if (due_ && steadyTime() - lastWrite_ >= writesPart * writeTook_) {
    std::string state;
    append(state, "running: %lld of %lld epochs were complete at %s", static_cast<long long>(complete_),
           static_cast<long long>(epochs_), utcNow().c_str());
    write(state);
  }
}

// A resumed run continues timing.csv of its folder; epochs that run again replace their earlier rows.
void Report::begin(const mtrun_progress &progress) {
  begun_ = due_ = true;
  epochs_ = progress.epochs;
  complete_ = progress.epoch;
  if (progress.total_step > 1)
    times_ = readTiming(folder_ + "/timing.csv", complete_);
  warn(writeTiming(folder_ + "/timing.csv", times_));
}

void Report::endEpoch(const mtrun_progress &progress) {
  EpochTime time = {progress.epoch + 1, began_,    progress.step - firstStep_, 0,
                    progress.seconds,   training_, progress.input_wait,        arguments_.devices};
  int64_t batch = mtrun_plan_batch(run_.plan.get());
  time.samples = time.steps * batch;
  if (int64_t missing = progress.step * batch - samples_; samples_ >= 0 && missing > 0 && missing < batch)
    time.samples -= missing; // the last batch is smaller
  times_.push_back(time);
  warn(appendTiming(folder_ + "/timing.csv", time));
  complete_ = progress.epoch + 1;
  due_ = true;
}

void Report::end(const mtrun_fit_result &result) {
  std::string state;
  bool complete = !result.stopped;
  if (result.stopped)
    append(state, "stopped after step %lld, %s", static_cast<long long>(result.total_step),
           result.saved ? "and saved" : "not saved");
  else if (result.stopped_early)
    append(state, "ended by early stopping after epoch %lld", static_cast<long long>(result.epochs));
  else
    append(state, "complete: %lld epochs", static_cast<long long>(result.epochs));
  if (result.not_finite)
    state += "; a loss of validation was not finite";
  complete_ = result.epochs;
  if (begun_) // false: the run had nothing left to do
    write(state + "; " + utcNow(), result.not_finite, complete);
}

void Report::fail(const std::string &message) {
  if (begun_)
    write("failed at " + utcNow() + ": " + message, true);
}

static std::string size(int64_t bytes) {
  bool large = bytes >= int64_t{10} << 30;
  std::string text;
  append(text, bytes >= int64_t{100} << (large ? 30 : 20) ? "%.0f %s" : "%.1f %s",
         static_cast<double>(bytes) / (large ? 0x1p30 : 0x1p20), large ? "GiB" : "MiB");
  return text;
}

static std::string cpuName() {
  char line[256];
  std::string name;
  if (FILE *file = fopen("/proc/cpuinfo", "r")) {
    while (name.empty() && fgets(line, sizeof line, file))
      if (strncmp(line, "model name", 10) == 0 && strchr(line, ':'))
        name.assign(strchr(line, ':') + 2, strcspn(strchr(line, ':') + 2, "\n"));
    fclose(file);
  }
  return name;
}

// 1: higher values of the metric are better; -1: lower values are better; 0: neither.
static int directionOf(const mtrun_plan *plan, std::string name) {
  if (name.starts_with("val_"))
    name.erase(0, 4);
  if (name == "learning_rate")
    return 0;
  for (int32_t i = 0; i < mtrun_plan_metric_count(plan, "train_step"); ++i)
    if (name == mtrun_plan_metric_name(plan, "train_step", i))
      return mtrun_plan_metric_higher_is_better(plan, "train_step", i) ? 1 : -1;
  return -1;
}

static void addTiles(ReportFacts &facts, int64_t complete, int64_t epochs, int64_t promised) {
  double samples = 0, seconds = 0, training = 0, waited = 0;
  for (const EpochTime &time : facts.times) {
    samples += static_cast<double>(time.samples);
    seconds += time.seconds;
    training += time.training;
    waited += time.waited;
  }
  facts.tiles.push_back({"epochs", std::to_string(complete) + " of " + std::to_string(std::max(epochs, complete))});
  if (training > 0) {
    facts.tiles.push_back({"seconds of epochs", shownNumber(seconds)});
    facts.tiles.push_back({"samples per second of training", shownNumber(samples / training)});
    facts.tiles.push_back({"waits for data", shownNumber(std::round(1000 * waited / training) / 10) + " %"});
  }
  facts.tiles.push_back({"promised for the devices", size(promised)});
}

ReportFacts Report::facts() const {
  const mtrun_plan *plan = run_.plan.get();
  mtrun_session_info info;
  mtrun_session_get_info(run_.session.get(), &info);
  ReportFacts facts;
  facts.model = mtrun_plan_model(plan);
  facts.metrics = readHistory(history_, complete_);
  for (const std::string &name : facts.metrics.names)
    facts.better.push_back(directionOf(plan, name));
  facts.times = times_;
  addTiles(facts, complete_, epochs_, info.peak_bytes);
  facts.memory = {
      {"promised for the devices", size(info.peak_bytes) + ", including variables " + size(info.variables_bytes)}};
  rusage usage = {};
  if (info.taken_bytes > 0)
    facts.memory.push_back({"taken of the GPUs", size(info.taken_bytes) + ", by any process"});
  else if (getrusage(RUSAGE_SELF, &usage) == 0)
    facts.memory.push_back({"taken by the process", size(int64_t{1024} * usage.ru_maxrss) +
                                                        " at most, with the program, the plan file and the data"});
  std::string lines = describe(run_, arguments_), command; // two lines, "plan ..." and "devices ..."
  for (const std::string &word : arguments_.words)
    command += quoted(word) + " ";
  size_t end = lines.find("\ndevices ");
  utsname host = {};
  uname(&host);
  facts.configuration = {
      {"plan", lines.substr(5, end - 5)},
      {"devices", lines.substr(end + 9, lines.size() - end - 10)},
      {"data", arguments_.data},
      {"validation", arguments_.validation.empty() && arguments_.loop.validation_split > 0
                         ? shownNumber(arguments_.loop.validation_split) + " of the data"
                         : arguments_.validation},
      {"seed", std::to_string(info.seed)},
      {"version", std::string("mtrun ") + mtrun_version()},
      {"host", std::string(host.nodename) + ", " + host.sysname + " " + host.release + ", " + cpuName()},
      {"began", began_},
      {"command", command}};
  return facts;
}

void Report::write(const std::string &state, bool failed, bool complete) {
  if (folder_.empty())
    return;
  double begin = steadyTime();
  ReportFacts facts = this->facts();
  facts.state = state;
  facts.failed = failed;
  facts.resume = resumeCommand(arguments_.words, folder_, complete);
  if (mtrun::Status status = mtrun::writeAtomically(folder_ + "/report.html", reportPage(facts)); !status.ok())
    warn(status.message());
  due_ = false;
  lastWrite_ = steadyTime();
  writeTook_ = lastWrite_ - begin;
}

} // namespace mtrun_tool
