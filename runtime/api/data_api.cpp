// SPDX-License-Identifier: Apache-2.0
//
// The functions of mtrun.h for data.
#include "runtime/api/Handles.h"
#include "runtime/data/Describe.h"
#include "runtime/data/OpenDataset.h"
#include "runtime/data/Order.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Split.h"

using namespace mtrun;

mt_status *mtrun_dataset_open(const mtrun_plan *plan, const char *spec, mtrun_dataset **dataset) {
  return guarded([&]() -> Status {
    if (!plan || !spec)
      return {MT_INVALID, "data: expected a plan and a specification, found NULL"};
    std::unique_ptr<mtrun_dataset> data;
    Status status = openDataset(*plan->plan, spec, data);
    if (status.ok())
      *dataset = data.release();
    return status;
  });
}

mt_status *mtrun_dataset_open_arrays(const mtrun_plan *plan, const mtrun_field *fields, int32_t count, int64_t samples,
                                     const char *keys, mtrun_dataset **dataset) {
  return guarded([&]() -> Status {
    if (!plan || !dataset)
      return {MT_INVALID, "arrays: expected a plan and room for the dataset, found NULL"};
    std::unique_ptr<mtrun_dataset> data;
    Status status = openOwnDataset(*plan->plan, fields, count, samples, nullptr, keys, data);
    if (status.ok())
      *dataset = data.release();
    return std::move(status).in("arrays: ");
  });
}

mt_status *mtrun_dataset_open_source(const mtrun_plan *plan, const mtrun_source *source, const char *keys,
                                     mtrun_dataset **dataset) {
  return guarded([&]() -> Status {
    if (!plan || !source || !source->read || !dataset)
      return {MT_INVALID, "source: expected a plan, a source with a callback and room for the dataset, found NULL"};
    std::unique_ptr<mtrun_dataset> data;
    Status status =
        openOwnDataset(*plan->plan, source->fields, source->field_count, source->samples, source, keys, data);
    if (status.ok())
      *dataset = data.release();
    return std::move(status).in("source: ");
  });
}

mt_status *mtrun_dataset_slice(const mtrun_dataset *dataset, int64_t begin, int64_t end, mtrun_dataset **slice) {
  return guarded([&]() -> Status {
    if (dataset && dataset->size < 0)
      return {MT_INVALID, "slice: expected data of known length, found a stream"};
    if (!dataset || !slice || begin < 0 || end <= begin || end > dataset->size)
      return {MT_INVALID, "slice: expected samples BEGIN:END within " + std::to_string(dataset ? dataset->size : 0) +
                              " with BEGIN < END, found " + std::to_string(begin) + ":" + std::to_string(end)};
    *slice = sliceOf(*dataset, begin, end).release();
    return {};
  });
}

void mtrun_dataset_notes(const mtrun_dataset *dataset, void (*line)(void *user, const char *text), void *user) {
  for (const std::string &note : dataset->notes)
    line(user, note.c_str());
}

int64_t mtrun_dataset_size(const mtrun_dataset *dataset) { return dataset->size; }

void mtrun_dataset_free(mtrun_dataset *dataset) { delete dataset; }

void mtrun_dataset_order(const mtrun_dataset *dataset, int64_t seed, int64_t epoch, int64_t *order) {
  if (dataset->size > 0)
    epochOrder(seed, epoch, dataset->size, order);
}

mt_status *mtrun_dataset_split(const mtrun_dataset *dataset, double share, int64_t seed, mtrun_dataset **training,
                               mtrun_dataset **validation) {
  return guarded([&]() -> Status {
    if (!dataset || !training || !validation)
      return {MT_INVALID, "validation split: expected a dataset and room for two, found NULL"};
    std::unique_ptr<mtrun_dataset> trainingPart, validationPart;
    if (Status s = splitDataset(*dataset, {share, false, seed}, trainingPart, validationPart); !s.ok())
      return s;
    *training = trainingPart.release();
    *validation = validationPart.release();
    return {};
  });
}

mt_status *mtrun_data_describe(const char *spec, int64_t samples, void (*line)(void *user, const char *text),
                               void *user) {
  return guarded([&]() -> Status {
    if (!spec || !line || samples < 0)
      return {MT_INVALID, "data: expected a specification, room for lines and a number of samples, found NULL or " +
                              std::to_string(samples)};
    return describeData(spec, samples, line, user);
  });
}

mt_status *mtrun_data_columns(const char *spec, const char *path, void (*line)(void *user, const char *text),
                              void *user) {
  return guarded([&]() -> Status {
    if (!spec || !path || !line)
      return {MT_INVALID, "data: expected a specification, a path and room for lines, found NULL"};
    return saveColumns(spec, path, line, user);
  });
}

mt_status *mtrun_data_benchmark(const char *spec, int64_t batch, double seconds,
                                void (*line)(void *user, const char *text), void *user) {
  return guarded([&]() -> Status {
    if (!spec || !line || batch < 1 || !(seconds > 0))
      return {MT_INVALID,
              "data: expected a specification, room for lines, a batch of at least 1 and some seconds, found "
              "NULL, " +
                  std::to_string(batch) + " or " + std::to_string(seconds)};
    return benchmarkData(spec, batch, seconds, line, user);
  });
}

// Returns NULL if `index` is out of range.
static const SourceKind *kindAt(int32_t index) {
  std::span<const SourceKind *const> kinds = sourceKinds();
  return index >= 0 && static_cast<size_t>(index) < kinds.size() ? kinds[static_cast<size_t>(index)] : nullptr;
}

const char *mtrun_data_form(int32_t index) {
  const SourceKind *kind = kindAt(index);
  return kind ? kind->form : nullptr;
}

const char *mtrun_data_help(int32_t index) {
  const SourceKind *kind = kindAt(index);
  return kind ? kind->help : nullptr;
}
