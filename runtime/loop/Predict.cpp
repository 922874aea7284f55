// SPDX-License-Identifier: Apache-2.0
#include "runtime/abi/atomic_file.h"
#include "runtime/api/Handles.h"
#include "runtime/data/Npy.h"
#include "runtime/loop/Loop.h"

using namespace mtrun;

namespace {

// Room for one batch of one output.
struct Output {
  size_t entry = 0; // in the signature
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape; // [?, ...]
  uint64_t rowBytes = 0;
  std::vector<std::unique_ptr<std::byte[]>> rows; // of each step in flight
};

} // namespace

static Status openOutputs(const mtrun_plan *plan, int64_t batch, int inFlight, std::vector<Output> &outputs) {
  for (int32_t i = 0; i < mtrun_plan_signature_count(plan, "predict"); ++i) {
    mtrun_tensor_info info;
    if (Status s = adopt(mtrun_plan_signature(plan, "predict", i, &info)); !s.ok())
      return s;
    if (info.role != MTRUN_OUTPUT)
      continue;
    Output output;
    output.entry = static_cast<size_t>(i);
    output.dtype = info.dtype;
    output.shape.assign(info.shape, info.shape + info.rank);
    output.rowBytes = mt_dtype_size(info.dtype);
    for (int32_t d = 1; d < info.rank; ++d)
      output.rowBytes *= static_cast<uint64_t>(info.shape[d]);
    for (int step = 0; step < inFlight; ++step)
      output.rows.push_back(std::make_unique<std::byte[]>(output.rowBytes * static_cast<uint64_t>(batch)));
    outputs.push_back(std::move(output));
  }
  return {};
}

// Begins the step that fills place `place` of the outputs.
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

static Status predictFile(mtrun_session *session, const mtrun_dataset *data, int32_t index, const char *path) {
  const mtrun_plan *plan = mtrun_session_plan(session);
  if (data->plan != plan)
    return {MT_INVALID, "the dataset was opened for another plan than the session's"};
  if (data->size < 0)
    return {MT_INVALID, "predict: expected data of known length, which a file says at its beginning"};
  Binding binding;
  if (Status s = data->bind("predict", binding); !s.ok())
    return s;
  StreamOptions stream;
  stream.batch = mtrun_plan_batch(plan);
  std::vector<Output> outputs;
  Session &devices = *session->session;
  int inFlight = devices.mostInFlight();
  if (Status s = openOutputs(plan, stream.batch, inFlight, outputs); !s.ok())
    return s;
  if (index < 0 || static_cast<size_t>(index) >= outputs.size())
    return {MT_INVALID, "predict: expected an output index below " + std::to_string(outputs.size()) + ", found " +
                            std::to_string(index)};
  const Output &chosen = outputs[static_cast<size_t>(index)];
  std::vector<int64_t> shape = chosen.shape;
  shape[0] = data->size;

  AtomicFile file;
  if (Status s = file.open(path); !s.ok())
    return s;
  std::string header = npyHeader(chosen.dtype, shape);
  if (Status s = file.write(header.data(), header.size()); !s.ok())
    return s;
  BatchStream batches(*data, binding, stream);
  std::vector<int64_t> rows(static_cast<size_t>(inFlight)); // of each step in flight
  auto place = [&](int64_t step) { return static_cast<size_t>(step % inFlight); };
  auto finish = [&](int64_t step) {
    if (Status s = devices.finish(nullptr); !s.ok())
      return s;
    return file.write(chosen.rows[place(step)].get(), chosen.rowBytes * static_cast<uint64_t>(rows[place(step)]));
  };
  int64_t steps = batches.stepsPerEpoch();
  Status status;
  for (int64_t step = 0; step < steps + inFlight - 1 && status.ok(); ++step) {
    if (step < steps)
      status = beginStep(devices, batches.next(), outputs, place(step), rows[place(step)]);
    if (int64_t oldest = step - inFlight + 1; status.ok() && oldest >= 0 && oldest < steps)
      status = finish(oldest);
  }
  while (devices.inFlight() > 0) // of a predict that failed
    (void)devices.finish(nullptr);
  return status.ok() ? file.commit() : status;
}

mt_status *mtrun_predict_file(mtrun_session *session, mtrun_dataset *data, int32_t index, const char *path) {
  return guarded([&]() -> Status {
    if (!session || !data || !path)
      return {MT_INVALID, "predict: expected a session, a dataset and a path, found NULL"};
    return predictFile(session, data, index, path);
  });
}
