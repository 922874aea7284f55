// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Loop.h"
#include "runtime/plan/Check.h"
#include "runtime/plan/Signature.h"
#include "runtime/session/Metric.h"
#include "runtime/support/hash_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace mtrun {

namespace fb = ::mt::plan;

static std::vector<MetricColumn> columnsOf(const fb::Program &program) {
  static const std::set<std::string> used = {"epoch",      "epochs",  "step",           "steps",
                                             "total_step", "seconds", "seconds_waited", "learning_rate"};
  std::set<std::string> names;
  for (const fb::Metric *metric : Each(program.metrics()))
    names.insert(metric->name()->str());
  std::vector<MetricColumn> columns;
  for (const fb::Metric *metric : Each(program.metrics())) {
    std::string name = metric->name()->str();
    if (used.count(name) || name.starts_with("val_")) {
      name = "metric_" + name;
      while (!names.insert(name).second)
        name += "_";
    }
    columns.push_back({name, metric->better() == fb::Better::Higher, metric->is_loss()});
  }
  return columns;
}

void readOwnRows(const Session &session, StreamOptions &options) {
  if (session.processes() == 1 || session.plan().tables().lengths())
    return;
  options.firstRow = session.ownRows().first;
  options.needed = session.ownRows().count;
}

Status EpochLoop::open(Session &session, const mtrun_dataset *data, const char *program, StreamOptions options) {
  const Plan &plan = session.plan();
  session_ = &session;
  train_ = strcmp(program, "train_step") == 0;
  program_ = train_ ? "train_step" : "eval_step";
  if (data->plan != &plan)
    return {MT_INVALID, "the dataset was opened for another plan than the session's"};
  if (data->keepDamaged)
    return {MT_INVALID, "damaged=keep is for predictions: expected data without damaged pictures"};
  Binding binding;
  if (Status s = data->bind(program, binding); !s.ok())
    return s;
  options.batch = static_cast<int64_t>(plan.batch());
  options.augment = train_;
  readOwnRows(session, options);
  comparesBatches_ = data->source && session.processes() > 1;
  const Session &devices = session;
  auto launches = static_cast<size_t>(devices.maxInFlight());
  auto perLaunch = static_cast<size_t>(devices.stepsPerLaunch(program_));
  options.held = static_cast<int>(launches * perLaunch);
  taken_.reserve(launches * perLaunch);
  launches_.reserve(launches);
  launchSteps_.reserve(perLaunch);
  if (data->size < 0 && options.window > 0)
    return {MT_INVALID, "a shuffle window needs data of known length"};
  options.shuffle = options.shuffle && data->size >= 0;
  if (options.dropRemainder && data->size >= 0 && data->size < options.batch)
    return {MT_INVALID, "dropping the remainder leaves no step: expected at least " + std::to_string(options.batch) +
                            " samples, found " + std::to_string(data->size)};
  // The first step has a whole batch; the last one of an epoch has what is left, if that is not left out.
  const bool ends = !options.dropRemainder && !options.stepsPerEpoch && data->size >= 0;
  for (int64_t rows : {options.batch, ends ? data->size % options.batch : 0})
    if (Status s = rows ? plan.checkRows(rows) : Status(); !s.ok())
      return s;
  const fb::Program &tables = *plan.program(program);
  columns_ = columnsOf(tables);
  means_ = std::make_unique<Means>(columns_.size(), sumsOf(tables),
                                   [&tables](size_t metric, const double *sums, const double *weights) {
                                     return metricValue(tables, metric, sums, weights);
                                   });
  stream_ = std::make_unique<BatchStream>(*data, binding, options);
  return {};
}

EpochLoop::~EpochLoop() {
  drop();
  if (stream_)
    session_->countRead(stream_->read().bytes, stream_->read().pictures);
}

// The rows of one process alone have nothing in common with the rows of other processes.
void EpochLoop::countBatch(const Batch &batch) {
  if (!comparesBatches_ || batch.begin > 0 || batch.end < batch.rows)
    return;
  size_t entry = 0;
  for (const mtrun_tensor_info &info : signatureOf(session_->plan(), program_)) {
    const void *tensor = batch.tensors[entry++];
    uint64_t bytes = mt_dtype_size(info.dtype) * static_cast<uint64_t>(batch.rows);
    for (int32_t d = 1; d < info.rank; ++d)
      bytes *= static_cast<uint64_t>(info.shape[d]);
    if (tensor)
      batchesHash_ += hashText(tensor, bytes);
  }
  batchesHash_ += std::to_string(batch.rows);
  batchesHash_ = hashText(batchesHash_.data(), batchesHash_.size());
}

// Begins launches while more may be in flight. A launch has the maximum number of steps if enough batches are ready,
// else one step. Waits for data only if no step is in flight.
Status EpochLoop::begin(int64_t most) {
  Session &devices = *session_;
  auto good = [](const Batch &batch) { return batch.status.ok() && batch.rows > 0; };
  while (launches_.size() < launches_.capacity()) {
    auto room = static_cast<size_t>(std::min<int64_t>(most - inFlight_, static_cast<int64_t>(launchSteps_.capacity())));
    auto waiting = [&] { return taken_.size() - static_cast<size_t>(inFlight_); };
    auto ends = [&] { return !taken_.empty() && (taken_.back()->last || !good(*taken_.back())); };
    if (most <= inFlight_)
      return {};
    while (waiting() < room && !ends() && (inFlight_ == 0 || stream_->ready()))
      taken_.push_back(&stream_->next());
    size_t runs = std::min(waiting(), room);
    if (runs == 0 || (runs < room && !ends() && inFlight_ > 0) || !good(*taken_[static_cast<size_t>(inFlight_)]))
      return {};
    if (runs < launchSteps_.capacity() || !good(*taken_.back()))
      runs = 1;
    launchSteps_.clear();
    for (size_t i = 0; i < runs; ++i) {
      const Batch &batch = *taken_[static_cast<size_t>(inFlight_) + i];
      launchSteps_.push_back({batch.tensors.data(), batch.rows});
      countBatch(batch);
    }
    if (Status status = devices.begin(program_, launchSteps_); !status.ok())
      return status;
    launches_.push_back(static_cast<int64_t>(runs));
    inFlight_ += static_cast<int64_t>(runs);
  }
  return {};
}

Status EpochLoop::step(int64_t most) {
  if (Status status = begin(std::max(most, inFlight_)); !status.ok())
    return status;
  batch_ = taken_.front();
  taken_.erase(taken_.begin());
  if (inFlight_ == 0) // the batch cannot be read, or the data has ended
    return batch_->status;
  --inFlight_;
  if (--launches_.front() == 0)
    launches_.erase(launches_.begin());
  if (Status status = session_->finish(means_->results()); !status.ok())
    return status;
  means_->add();
  return {};
}

void EpochLoop::drop() {
  while (inFlight_ > 0) {
    (void)session_->finish(nullptr);
    --inFlight_;
  }
  launches_.clear();
  taken_.clear();
}

static int64_t firstNotFinite(mt_dtype dtype, const void *data, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i)
    if (dtype == MT_F32   ? !std::isfinite(static_cast<const float *>(data)[i])
        : dtype == MT_F64 ? !std::isfinite(static_cast<const double *>(data)[i])
                          : false)
      return static_cast<int64_t>(i);
  return -1;
}

// Counts variables with a value that is not finite, and returns the name of the first.
static int64_t variablesNotFinite(const Session &session, std::string &first) {
  int64_t count = 0;
  uint32_t index = 0;
  // iterates without building a list, because this runs every epoch
  for (const fb::Variable *variable : Each(session.plan().tables().variables())) {
    mtrun_tensor_info info = infoOf(*variable);
    std::span<const std::byte> bytes = session.ownPart(index++);
    if (firstNotFinite(info.dtype, bytes.data(), bytes.size() / mt_dtype_size(info.dtype)) < 0)
      continue;
    if (count++ == 0)
      first = info.name;
  }
  return count;
}

// Describes where values that are not finite come from: the batch if its data is not finite, else the variables.
static std::string culprit(const Session &session, const char *program, const Batch &batch) {
  size_t index = 0;
  for (const mtrun_tensor_info &info : signatureOf(session.plan(), program)) {
    const void *tensor = batch.tensors[index++];
    if (!tensor)
      continue;
    uint64_t elements = 1;
    for (int32_t d = 1; d < info.rank; ++d)
      elements *= static_cast<uint64_t>(info.shape[d]);
    auto begin = static_cast<uint64_t>(batch.begin);
    const auto *own = static_cast<const std::byte *>(tensor) + begin * elements * mt_dtype_size(info.dtype);
    int64_t at = firstNotFinite(info.dtype, own, elements * static_cast<uint64_t>(batch.end - batch.begin));
    if (at >= 0)
      return std::string("\"") + info.name + "\" of the data is not finite either, at row " +
             std::to_string(begin + static_cast<uint64_t>(at) / elements) + " of the batch";
  }
  std::string first, data = batch.end - batch.begin < batch.rows ? "the data of this process" : "the data";
  int64_t count = variablesNotFinite(session, first);
  if (count == 0)
    return batch.end - batch.begin < batch.rows ? data + " and the variables are finite"
                                                : "data and variables are finite";
  return data + " is finite, " + std::to_string(count) +
         (count == 1 ? " variable is not: " : " variables are not, the first is ") + first;
}

Status EpochLoop::checkVariables() const {
  std::string first;
  int64_t count = variablesNotFinite(*session_, first);
  if (count == 0)
    return {};
  return {MT_INVALID, std::to_string(count) +
                          (count == 1 ? " variable is not finite: " : " variables are not finite, the first is ") +
                          first};
}

Status EpochLoop::checkFinite() const {
  for (size_t i = 0; i < columns_.size() && columns_[i].loss; ++i)
    if (double value = means_->values()[i]; means_->weights()[i] != 0 && !std::isfinite(value))
      return {MT_INVALID, "\"" + columns_[i].name + "\" is " +
                              (std::isnan(value) ? "not a number"
                               : value > 0       ? "infinite"
                                                 : "minus infinity") +
                              "; " + culprit(*session_, train_ ? "train_step" : "eval_step", *batch_)};
  return {};
}

} // namespace mtrun
