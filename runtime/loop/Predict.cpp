// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Compare.h"
#include "runtime/loop/Loop.h"
#include "runtime/loop/Predictions.h"
#include "runtime/loop/Run.h"
#include "runtime/plan/Signature.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mtrun;

namespace {

// One output, with memory for a batch of it.
struct Output {
  size_t entry = 0; // index in the signature
  std::string name;
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape; // [?, ...]
  uint64_t rowBytes = 0;
  std::vector<std::unique_ptr<std::byte[]>> rows; // by step in flight
};

} // namespace

static void openOutputs(const Plan &plan, int64_t batch, int inFlight, std::vector<Output> &outputs) {
  const std::vector<mtrun_tensor_info> entries = signatureOf(plan, "predict");
  for (size_t i = 0; i < entries.size(); ++i) {
    const mtrun_tensor_info &info = entries[i];
    if (info.role != MTRUN_OUTPUT)
      continue;
    Output output;
    output.entry = i;
    output.name = info.name;
    output.dtype = info.dtype;
    output.shape.assign(info.shape, info.shape + info.rank);
    output.rowBytes = mt_dtype_size(info.dtype);
    for (int32_t d = 1; d < info.rank; ++d)
      output.rowBytes *= static_cast<uint64_t>(info.shape[d]);
    for (int step = 0; step < inFlight; ++step)
      output.rows.push_back(std::make_unique<std::byte[]>(output.rowBytes * static_cast<uint64_t>(batch)));
    outputs.push_back(std::move(output));
  }
}

// Begins the step that writes slot `place` of the outputs.
static Status beginStep(Session &devices, const Batch &batch, const std::vector<Output> &outputs, size_t place,
                        int64_t &rows) {
  if (!batch.status.ok())
    return batch.status;
  rows = batch.rows;
  std::vector<const void *> tensors(batch.tensors.begin(), batch.tensors.end());
  for (const Output &output : outputs)
    tensors[output.entry] = output.rows[place].get();
  Session::Step step = {tensors.data(), rows};
  return devices.begin("predict", {&step, 1});
}

// Returns the classes of an output whose values are class scores: the class names, or the numbers if a target has
// integer labels. Empty for other outputs.
static std::vector<std::string> classesOf(const Session &session, const Output &output) {
  if (output.shape.size() != 2 || output.shape[1] < 2)
    return {};
  if (session.classNames().size() == static_cast<size_t>(output.shape[1]))
    return session.classNames();
  bool labels = false;
  for (const mtrun_tensor_info &info : signatureOf(session.plan(), "eval_step"))
    if (info.role == MTRUN_TARGET)
      labels |= (info.dtype == MT_I32 || info.dtype == MT_I64) && info.rank == 1;
  std::vector<std::string> numbers;
  for (int64_t i = 0; labels && i < output.shape[1]; ++i)
    numbers.push_back(std::to_string(i));
  return numbers;
}

// Samples are named by file if they are pictures, else by number.
static PredictedSamples samplesOf(const Session &session, const mtrun_dataset &data) {
  PredictedSamples samples = {data.size, nullptr, [&data](int64_t i) { return data.sample(i); }, session.classNames()};
  for (const Column &column : data.columns)
    if (column.made())
      samples.file = [&data, pictures = column.field.pictures](int64_t i) {
        return pictures->nameOf(static_cast<uint64_t>(data.sample(i)));
      };
  return samples;
}

// Fills the rows of pictures that could not be read with NaN, or 0 for integers.
static void voidRows(const Output &output, size_t place, const std::vector<uint8_t> &damaged) {
  for (size_t row = 0; row < damaged.size(); ++row) {
    std::byte *out = output.rows[place].get() + row * output.rowBytes;
    if (!damaged[row])
      continue;
    memset(out, 0, output.rowBytes);
    float narrow = NAN;
    double wide = NAN;
    for (uint64_t i = 0; output.dtype == MT_F32 && i < output.rowBytes; i += sizeof narrow)
      memcpy(out + i, &narrow, sizeof narrow);
    for (uint64_t i = 0; output.dtype == MT_F64 && i < output.rowBytes; i += sizeof wide)
      memcpy(out + i, &wide, sizeof wide);
  }
}

// Selects the outputs to write: one, or all.
static Status choose(const std::string &path, int32_t index, const std::vector<Output> &outputs,
                     std::vector<const Output *> &chosen) {
  if (outputs.empty())
    return {MT_INVALID, "predict: expected a plan with outputs, found one whose model has no mt.output"};
  if (index < -1 || (index >= 0 && static_cast<size_t>(index) >= outputs.size()))
    return {MT_INVALID, "predict: expected an output index below " + std::to_string(outputs.size()) + ", found " +
                            std::to_string(index)};
  bool one = index >= 0 || path.ends_with(".npy");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!one || i == static_cast<size_t>(std::max(index, 0)))
      chosen.push_back(&outputs[i]);
  return {};
}

namespace {

// Runs predict with the maximum number of steps in flight.
class Prediction {
public:
  // `file` is null in all processes but the first.
  Prediction(Session &session, const std::vector<Output> &all, const std::vector<const Output *> &chosen,
             Predictions *file, bool keepsDamaged)
      : session_(session), all_(all), chosen_(chosen), file_(file), keepsDamaged_(keepsDamaged),
        inFlight_(session.maxInFlight()), rows_(static_cast<size_t>(inFlight_)),
        damaged_(static_cast<size_t>(inFlight_)) {}
  Status run(BatchStream &batches);

private:
  size_t place(int64_t step) const { return static_cast<size_t>(step % inFlight_); }
  Status finish(int64_t step);

  Session &session_;
  const std::vector<Output> &all_;
  const std::vector<const Output *> &chosen_;
  Predictions *file_;
  bool keepsDamaged_;
  int inFlight_;
  std::vector<int64_t> rows_; // by step in flight
  std::vector<std::vector<uint8_t>> damaged_;
  int64_t voided_ = 0;

  // Several processes: tells process 0 of the pictures that another one could not read.
  Status shareDamaged(int64_t step);
};

} // namespace

Status Prediction::shareDamaged(int64_t step) {
  std::vector<uint8_t> &damaged = damaged_[place(step)];
  if (session_.processes() == 1 || !keepsDamaged_)
    return {};
  std::vector<std::string> all;
  if (Status s = session_.gather({damaged.begin(), damaged.end()}, all); !s.ok())
    return s;
  for (const std::string &each : all)
    for (size_t row = 0; row < std::min(each.size(), damaged.size()); ++row)
      damaged[row] |= static_cast<uint8_t>(each[row]);
  return {};
}

Status Prediction::finish(int64_t step) {
  if (Status s = session_.finish(nullptr); !s.ok())
    return s;
  std::vector<const std::byte *> rows;
  const std::vector<uint8_t> &damaged = damaged_[place(step)];
  if (Status s = shareDamaged(step); !s.ok())
    return s;
  voided_ += std::count(damaged.begin(), damaged.end(), 1);
  for (const Output *output : chosen_) {
    voidRows(*output, place(step), damaged);
    rows.push_back(output->rows[place(step)].get());
  }
  return file_ ? file_->add(rows, rows_[place(step)]) : Status();
}

Status Prediction::run(BatchStream &batches) {
  int64_t steps = batches.stepsPerEpoch();
  Status status;
  for (int64_t step = 0; step < steps + inFlight_ - 1 && status.ok(); ++step) {
    if (step < steps) {
      const Batch &batch = batches.next();
      status = beginStep(session_, batch, all_, place(step), rows_[place(step)]);
      damaged_[place(step)].assign(batch.damaged.begin(), batch.damaged.end());
      damaged_[place(step)].resize(batch.damaged.empty() ? 0 : static_cast<size_t>(batch.rows));
    }
    if (int64_t oldest = step - inFlight_ + 1; status.ok() && oldest >= 0 && oldest < steps)
      status = finish(oldest);
  }
  while (session_.inFlight() > 0) // steps of a prediction that failed
    (void)session_.finish(nullptr);
  if (status.ok() && voided_ > 0)
    session_.log(1, std::to_string(voided_) + (voided_ == 1 ? " picture" : " pictures") + " could not be read and " +
                        (voided_ == 1 ? "has a row" : "have rows") + " of NaN");
  return status;
}

// Process 0 writes the rows of all processes in order, so all must have the same data.
Status mtrun::compareProcesses(Session &session, const mtrun_dataset &data) {
  if (session.processes() == 1)
    return {};
  std::string lines = "variables: " + session.variablesHash();
  Status status = appendDataLines(data, "the data", lines);
  return status.ok() ? session.agree(lines) : status;
}

Status mtrun::predictFile(Session &session, mtrun_dataset &data, int32_t index, const char *path) {
  const Plan &plan = session.plan();
  std::unique_ptr<Predictions> file;
  if (Status s = makePredictions(path, file); !s.ok())
    return s;
  if (data.plan != &plan)
    return {MT_INVALID, "the dataset was opened for another plan than the session's"};
  if (!session.sharesOutputs())
    return {MT_INVALID, "predict: expected one process for the GPUs, found " + std::to_string(session.processes())};
  if (data.size < 0)
    return {MT_INVALID, "predict: expected data of known length, because the file's header has the number of rows"};
  Binding binding;
  if (Status s = data.bind("predict", binding); !s.ok())
    return s;
  StreamOptions stream;
  stream.batch = static_cast<int64_t>(plan.batch());
  stream.held = session.maxInFlight();
  readOwnRows(session, stream);
  std::vector<Output> outputs;
  std::vector<const Output *> chosen;
  openOutputs(plan, stream.batch, stream.held, outputs);
  if (Status s = choose(path, index, outputs, chosen); !s.ok())
    return s;
  std::vector<Predicted> predicted;
  for (const Output *output : chosen) {
    predicted.push_back({output->name, output->dtype, output->shape, output->rowBytes, classesOf(session, *output)});
    predicted.back().shape[0] = data.size;
  }
  if (Status s = compareProcesses(session, data); !s.ok())
    return s;
  if (session.process() > 0)
    file.reset();
  if (file)
    if (Status s = file->open(path, predicted, samplesOf(session, data)); !s.ok())
      return s;
  BatchStream batches(data, binding, stream);
  Status status = Prediction(session, outputs, chosen, file.get(), data.keepDamaged).run(batches);
  session.countRead(batches.read().bytes, batches.read().pictures);
  return status.ok() && file ? file->commit() : status;
}
