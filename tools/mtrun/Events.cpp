// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Events.h"

#include "runtime/support/atomic_file.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace mtrun_tool {

constexpr double flushSeconds = 5;

static double unixTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

EventFile::~EventFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

void EventFile::add(const std::string &record) {
  if (path_.empty()) {
    char host[256] = "localhost", name[400];
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "/events.out.tfevents.%010lld.%s.%d.0", static_cast<long long>(unixTime()), host,
             getpid());
    path_ = folder_ + name;
    pending_ = versionRecord(unixTime());
  }
  pending_ += record;
}

void EventFile::add(int64_t step, const std::string &tag, double value) {
  add(scalarRecord(unixTime(), step, tag, static_cast<float>(value)));
}

std::string EventFile::flush() {
  if (pending_.empty())
    return "";
  if (descriptor_ < 0) {
    (void)mtrun::makeFolders(path_.substr(0, path_.rfind('/'))); // open() below reports an error
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  }
  ssize_t written = descriptor_ < 0 ? -1 : write(descriptor_, pending_.data(), pending_.size());
  if (written != static_cast<ssize_t>(pending_.size()))
    return "cannot write " + path_ + ": " + strerror(written < 0 ? errno : ENOSPC);
  pending_.clear();
  return "";
}

void EventLog::describe(const mtrun_plan *plan, const std::string &markdown) {
  std::vector<GraphNode> nodes;
  auto take = [](void *user, const mtrun_node *node) {
    GraphNode copy = {node->name, node->kind, {}};
    for (int32_t i = 0; i < node->inputs; ++i)
      copy.inputs.push_back(node->input_names[i]);
    static_cast<std::vector<GraphNode> *>(user)->push_back(std::move(copy));
  };
  const char *program = mtrun_plan_has_program(plan, "predict") ? "predict" : "train_step";
  if (mt_status *status = mtrun_plan_graph(plan, program, take, &nodes))
    mt_status_free(status); // the log is useful without the graph
  else
    train_.add(graphRecord(unixTime(), nodes));
  train_.add(textRecord(unixTime(), "run", markdown));
}

void EventLog::addHistograms(mtrun_session *session, int64_t epoch) {
  const mtrun_plan *plan = mtrun_session_plan(session);
  std::vector<float> values;
  for (int32_t i = 0; i < mtrun_plan_variable_count(plan); ++i) {
    mtrun_tensor_info info;
    if (mt_status *status = mtrun_plan_variable(plan, i, &info)) {
      mt_status_free(status);
      continue;
    }
    if (info.kind == 2 || info.dtype != MT_F32 || info.rank == 0) // skip slots and scalars
      continue;
    size_t elements = 1;
    for (int32_t d = 0; d < info.rank; ++d)
      elements *= static_cast<size_t>(info.shape[d]);
    values.resize(elements);
    if (mt_status *status = mtrun_get_variable(session, info.name, values.data(), elements * sizeof(float))) {
      mt_status_free(status);
      continue;
    }
    train_.add(histogramRecord(unixTime(), epoch, std::string(info.name) + "/histogram", histogramOf(values)));
  }
}

std::string EventLog::update(const mtrun_progress &progress) {
  auto strip = [](const char *name) { return strncmp(name, "val_", 4) == 0 ? name + 4 : name; };
  if (progress.step_values && progress.total_step != lastStep_)
    for (int32_t i = 0; i < progress.metrics; ++i)
      if (strip(progress.names[i]) == progress.names[i])
        train_.add(progress.total_step, std::string("batch_") + progress.names[i], progress.step_values[i]);
  lastStep_ = progress.total_step;
  if (progress.epoch_end) {
    for (int32_t i = 0; i < progress.metrics; ++i) {
      bool held = progress.validation && strip(progress.names[i]) != progress.names[i];
      (held ? validation_ : train_)
          .add(progress.epoch, std::string("epoch_") + strip(progress.names[i]), progress.values[i]);
    }
    if (progress.learning_rate == progress.learning_rate) // not NaN: the rate is known
      train_.add(progress.epoch, "epoch_learning_rate", progress.learning_rate);
    if (session_)
      addHistograms(session_, progress.epoch);
  }
  if (!progress.epoch_end && unixTime() - lastFlush_ < flushSeconds)
    return "";
  lastFlush_ = unixTime();
  std::string problem = train_.flush();
  return problem.empty() ? validation_.flush() : problem;
}

} // namespace mtrun_tool
