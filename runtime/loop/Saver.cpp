// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Saver.h"
#include "runtime/support/launcher.h"
#include "runtime/support/suggest.h"

#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace mtrun {

// Returns the name of the supervisor that started this process; "" if there is none.
static std::string supervisorName() {
  const char *text = environmentVariable(supervisorVariable);
  std::string_view all = text ? text : "";
  return std::string(all.substr(0, all.find(' ')));
}

Status Saver::open(Session &session, const mtrun_checkpoint_options &options, const Note &note) {
  session_ = &session;
  options_ = options;
  if (options.keep < 0 || options.every_steps < 0 || options.every_epochs < 0 || !(options.every_seconds >= 0) ||
      std::isinf(options.every_seconds))
    return {
        MT_INVALID,
        "expected numbers of at least 0 for the checkpoint options every_steps, every_seconds, every_epochs and keep"};
  if (options_.keep == 0)
    options_.keep = 3;
  if (!options.every_steps && !options.every_epochs && options.every_seconds == 0)
    options_.every_epochs = 1;
  if (options.folder) {
    if (Status s = folder_.open(disk_, options.folder, supervisorName()); !s.ok())
      return s;
    for (const std::string &name : folder_.strangers())
      note(folder_.path() + "/" + name + " is a link, or has other files in it: it stays as it is");
    opened_ = true;
  }
  resume_ = options.resume ? options.resume : "";
  std::vector<int64_t> steps = opened_ ? checkpointSteps(folder_.path()) : std::vector<int64_t>();
  if (!steps.empty() && resume_.empty())
    return {MT_INVALID, folder_.path() + " holds the checkpoints of a run that came to step " +
                            std::to_string(steps.front()) +
                            "; expected another folder, or to resume it (--resume auto)"};
  return opened_ ? folder_.claim(resumesNewest()) : Status();
}

bool Saver::resumesNewest() const { return resume_ == "auto"; }

std::string Saver::bestFolder() const { return opened_ ? folder_.path() : from_.substr(0, from_.rfind('/')); }

// Renames newer checkpoints that do not verify, because this run will write checkpoints of the same names.
void Saver::setAside(const std::vector<std::string> &skipped, int64_t resumedStep, const Note &note) const {
  for (const std::string &line : skipped)
    note(line);
  for (int64_t step : checkpointSteps(folder_.path()))
    if (step > resumedStep)
      if (std::string aside = folder_.setAside(step); !aside.empty())
        note("kept the damaged checkpoint as " + aside);
}

Status Saver::find(const Note &note, Checkpoint &checkpoint, bool &found) const {
  found = false;
  if (resume_.empty())
    return {};
  if (!resumesNewest()) {
    Status s = readCheckpoint(resume_, checkpoint);
    found = s.ok();
    return s.code() == MT_IO ? Status(MT_IO, s.message() + didYouMean(resume_, {"auto"})) : s;
  }
  if (!opened_)
    return {MT_INVALID, "resume auto: expected a folder of checkpoints (--checkpoint DIR), found none"};
  std::vector<std::string> skipped;
  found = findNewest(folder_.path(), checkpoint, skipped);
  if (found) {
    setAside(skipped, checkpoint.manifest.state.step, note);
    return {};
  }
  std::string lines;
  for (const std::string &line : skipped)
    lines += "\n" + line;
  return skipped.empty() ? Status()
                         : Status(MT_CORRUPT, "resume auto: none of the " + std::to_string(skipped.size()) +
                                                  " checkpoints in " + folder_.path() + " verifies" + lines);
}

Status Saver::adopt(const Checkpoint &checkpoint, const Note &note, LoopState &state) {
  int64_t step = checkpoint.manifest.state.step;
  if (opened_ && !checkpointSteps(folder_.path()).empty() && checkpointSteps(folder_.path()).front() > step) {
    if (!options_.force)
      return {MT_INVALID, folder_.path() + " holds checkpoints up to step " +
                              std::to_string(checkpointSteps(folder_.path()).front()) + ", after step " +
                              std::to_string(step) + " of " + resume_ +
                              "; expected another folder to save in, or --force, which removes them"};
    folder_.removeAfter(step);
  }
  int64_t given = session_->info().seed, own = static_cast<int64_t>(session_->plan().tables().seed());
  if (given != own && given != checkpoint.manifest.state.seed)
    note("seed " + std::to_string(given) + " is not used: the run that is resumed has seed " +
         std::to_string(checkpoint.manifest.state.seed));
  if (Status s = restore(*session_, checkpoint, options_.force != 0, samePlan_); !s.ok())
    return s;
  state = checkpoint.manifest.state;
  from_ = checkpoint.path;
  resumed_ = true;
  savedStep_ = opened_ && checkpoint.path == folder_.path() + "/" + checkpointName(step) ? step : -1;
  savedEpochEnd_ = state.position == 0;
  if (!samePlan_)
    note("another plan made " + from_ + ": continuing with its variables, to other bits");
  return {};
}

Status Saver::checkData(const LoopState &now, LoopState &state) const {
  if (!resumed_)
    return {};
  Status status = compareData(state, now, from_);
  if (status.ok() && samePlan_)
    return {};
  if (!status.ok() && !options_.force)
    return status;
  state.position = 0;
  return {};
}

Status Saver::start(const Monitor &monitor, bool allowNan) {
  monitor_ = monitor.name;
  if (!opened_)
    return {};
  writer_ = std::make_unique<CheckpointWriter>(
      folder_, *session_, CheckpointWriter::Keep{options_.keep, monitor.higher, allowNan}, savesTogether());
  sinceSave_ = Stopwatch();
  return folder_.checkRoom(writer_->bytes());
}

bool Saver::dueAfterStep(int64_t step) {
  if (options_.every_steps > 0 && step % options_.every_steps == 0)
    return true;
  return options_.every_seconds > 0 && sinceSave_.seconds() >= options_.every_seconds && writer_->idle();
}

int64_t Saver::stepsUntilDue(int64_t step) const {
  return options_.every_steps > 0 ? options_.every_steps - step % options_.every_steps : INT64_MAX;
}

bool Saver::dueAfterEpoch(int64_t epochs) { return options_.every_epochs > 0 && epochs % options_.every_epochs == 0; }

Manifest Saver::manifestOf(const LoopState &state, std::optional<double> monitored) const {
  Manifest manifest;
  const Plan &plan = session_->plan();
  manifest.model = plan.tables().model() ? plan.tables().model()->str() : "";
  manifest.plan = plan.stepsHash();
  manifest.tuning = session_->tuning();
  manifest.conditions = session_->conditions();
  manifest.state = state;
  manifest.monitor = monitor_;
  manifest.monitored = monitored;
  return manifest;
}

void Saver::save(const LoopState &state, std::optional<double> monitored, bool finite, int64_t keptStep) {
  if (has(state))
    return;
  Manifest manifest = manifestOf(state, monitored);
  tellError();
  writer_->save(std::move(manifest), finite, keptStep);
  savedStep_ = state.step;
  savedEpochEnd_ = state.position == 0;
  sinceSave_ = Stopwatch();
}

// Reports the error of the save before. An error of a save is reported by the next save or by finish().
void Saver::tellError() {
  writer_->wait();
  if (Status s = writer_->takeError(); !s.ok())
    session_->log(1, "a checkpoint was not saved: " + s.message());
}

Status Saver::meet(Session &session, const Note &note) {
  std::error_code error;
  std::string path = opened_ ? std::filesystem::absolute(folder_.path(), error).string() : "";
  std::string word = path + "\n" + folder_.incarnation().run;
  if (Status s = session.broadcast(word); !s.ok())
    return s;
  size_t end = word.find('\n');
  std::string folder = word.substr(0, end);
  if (folder.empty())
    return {};
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::string seen = descriptor >= 0 && readIncarnation(descriptor).run == word.substr(end + 1) ? "1" : "0";
  if (descriptor >= 0)
    ::close(descriptor);
  std::vector<std::string> answers;
  if (Status s = session.gather(seen, answers); !s.ok())
    return s;
  auto without = std::ranges::find(answers, "0");
  std::string decision = without == answers.end() ? "1" : "0";
  if (Status s = session.broadcast(decision); !s.ok())
    return s;
  if (decision == "1")
    divided_ = std::make_unique<DividedFile>(session);
  else if (session.process() == 0)
    note("process " + std::to_string(without - answers.begin()) + " has no access to " + folder_.path() +
         ": process 0 collects the optimizer's variables for each checkpoint");
  return {};
}

Status Saver::saveTogether(const LoopState &state, std::optional<double> monitored, bool finite, int64_t keptStep) {
  Session &session = *session_;
  std::string place, hashes; // "": nothing is saved
  if (writer_ && !has(state)) {
    tellError();
    if (Status s = writer_->begin(state.step, place); !s.ok()) {
      writer_->abandon(state.step, std::move(s));
      place.clear();
    }
    savedStep_ = state.step;
    savedEpochEnd_ = state.position == 0;
    sinceSave_ = Stopwatch();
    if (std::error_code error; !place.empty())
      place = std::filesystem::absolute(place, error).string();
  }
  Status status = session.broadcast(place);
  if (status.ok() && place.empty())
    return {};
  std::vector<std::string> answers;
  if (status.ok()) {
    Status written = divided_->writeParts(disk_, place, hashes);
    status = session.gather(written.ok() ? hashes : "!" + written.message(), answers);
  }
  if (!writer_)
    return status;
  Status failed = status;
  for (size_t process = 0; process < answers.size() && failed.ok(); ++process)
    if (answers[process].starts_with('!'))
      failed = {MT_IO, "process " + std::to_string(process) + ": " + answers[process].substr(1)};
  if (failed.ok()) {
    writer_->expect(std::move(answers));
    writer_->save(manifestOf(state, monitored), finite, keptStep);
  } else {
    writer_->abandon(state.step, std::move(failed));
  }
  return status;
}

Status Saver::finish() {
  writer_->wait();
  return writer_->takeError();
}

} // namespace mtrun
