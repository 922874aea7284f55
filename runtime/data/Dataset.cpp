// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Dataset.h"
#include "runtime/api/Handles.h"
#include "runtime/data/Order.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace mtrun;

void Column::gather(int64_t begin, const int64_t *rows, int64_t count, void *out) const {
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t *from = source.bytes.get() + static_cast<uint64_t>(begin + rows[i]) * elements;
    if (dtype == MT_F32) {
      float *to = static_cast<float *>(out) + static_cast<uint64_t>(i) * elements;
      for (uint64_t e = 0; e < elements; ++e)
        to[e] = table[from[e]];
    } else {
      static_cast<int32_t *>(out)[i] = *from;
    }
  }
}

static std::string shapeText(const mtrun_tensor_info &info) {
  std::string text = std::string(mt_dtype_name(info.dtype)) + " [";
  for (int32_t i = 0; i < info.rank; ++i)
    text += (i ? ", " : "") + (info.shape[i] < 0 ? std::string("?") : std::to_string(info.shape[i]));
  return text + "]";
}

// Elements of one sample: the product behind the batch axis. Plans are verified, so it fits.
static uint64_t sampleElements(const mtrun_tensor_info &info) {
  uint64_t elements = 1;
  for (int32_t i = 1; i < info.rank; ++i)
    elements *= static_cast<uint64_t>(info.shape[i]);
  return elements;
}

// The program whose signature a data source has to fill.
static const char *dataProgram(const mtrun_plan *plan) {
  for (const char *program : {"train_step", "eval_step"})
    if (mtrun_plan_has_program(plan, program))
      return program;
  return "predict";
}

static Status entriesOf(const mtrun_plan *plan, const char *program, std::vector<mtrun_tensor_info> &entries) {
  entries.resize(static_cast<size_t>(mtrun_plan_signature_count(plan, program)));
  for (size_t i = 0; i < entries.size(); ++i)
    if (mt_status *s = mtrun_plan_signature(plan, program, static_cast<int32_t>(i), &entries[i])) {
      Status status(mt_status_code(s), mt_status_message(s));
      mt_status_free(s);
      return status;
    }
  return {};
}

// The only entry with that role; a data source of one input and one target cannot serve more.
static Status onlyEntry(const std::vector<mtrun_tensor_info> &entries, mtrun_role role,
                        const mtrun_tensor_info *&found) {
  found = nullptr;
  int count = 0;
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role == role && ++count == 1)
      found = &entry;
  if (count > 1 || (count == 0 && role == MTRUN_INPUT))
    return {MT_INVALID, std::string("mnist data has one input and one target, the model has ") + std::to_string(count) +
                            (role == MTRUN_INPUT    ? " inputs"
                             : role == MTRUN_TARGET ? " targets"
                                                    : " inputs of weights")};
  return {};
}

// Classes as the model's only output [?, C] tells them.
static std::optional<int64_t> outputClasses(const mtrun_plan *plan) {
  for (const char *program : {"predict", "eval_step", "train_step"}) {
    std::vector<mtrun_tensor_info> entries;
    if (!entriesOf(plan, program, entries).ok())
      continue;
    int outputs = 0;
    std::optional<int64_t> classes;
    for (const mtrun_tensor_info &entry : entries)
      if (entry.role == MTRUN_OUTPUT) {
        ++outputs;
        classes = entry.rank == 2 && entry.shape[1] > 1 ? std::optional(entry.shape[1]) : std::nullopt;
      }
    if (outputs == 1 && classes)
      return classes;
  }
  return std::nullopt;
}

static Status openImages(const DataSpec &spec, const mtrun_tensor_info &entry, Column &column) {
  std::string path = spec.folder + (spec.test ? "/t10k" : "/train") + "-images-idx3-ubyte";
  if (Status s = readIdx(path, 3, column.source); !s.ok())
    return s;
  uint64_t pixels = column.source.dims[1] * column.source.dims[2]; // two u32, cannot overflow
  if (entry.dtype != MT_F32 || sampleElements(entry) != pixels)
    return {MT_INVALID, column.source.path + ": images of " + std::to_string(column.source.dims[1]) + "x" +
                            std::to_string(column.source.dims[2]) + " pixels do not fit input \"" + entry.name +
                            "\": " + shapeText(entry)};
  column.name = entry.name;
  column.role = MTRUN_INPUT;
  column.dtype = MT_F32;
  column.elements = pixels;
  column.rowBytes = pixels * sizeof(float);
  for (int i = 0; i < 256; ++i)
    column.table[i] = spec.scale ? static_cast<float>(i) / 255.0f : static_cast<float>(i);
  return {};
}

static Status openLabels(const DataSpec &spec, const mtrun_tensor_info &entry, Column &column) {
  std::string path = spec.folder + (spec.test ? "/t10k" : "/train") + "-labels-idx1-ubyte";
  if (Status s = readIdx(path, 1, column.source); !s.ok())
    return s;
  if (entry.dtype != MT_I32 || sampleElements(entry) != 1)
    return {MT_INVALID, column.source.path + ": one label a sample (i32) does not fit target \"" + entry.name +
                            "\": " + shapeText(entry)};
  column.name = entry.name;
  column.role = MTRUN_TARGET;
  column.dtype = MT_I32;
  column.elements = 1;
  column.rowBytes = sizeof(int32_t);
  return {};
}

// Weights of samples by their labels, for the model's only input of weights.
static Status addClassWeights(const DataSpec &spec, const std::vector<mtrun_tensor_info> &entries,
                              mtrun_dataset &data) {
  const mtrun_tensor_info *entry;
  if (Status s = onlyEntry(entries, MTRUN_SAMPLE_WEIGHT, entry); !s.ok())
    return s;
  if (!entry || data.columns.size() < 2)
    return {MT_INVALID, "data: class-weight needs labels and a model that takes weights of samples (mtc compile "
                        "--sample-weights), found none"};
  const IdxArray &labels = data.columns[1].source;
  Column weights = {};
  weights.name = entry->name;
  weights.role = MTRUN_SAMPLE_WEIGHT;
  weights.dtype = MT_F32;
  weights.elements = 1;
  weights.rowBytes = sizeof(float);
  weights.source = {labels.path, labels.dims, std::make_unique<uint8_t[]>(labels.size), labels.size};
  std::copy_n(labels.bytes.get(), labels.size, weights.source.bytes.get());
  std::fill(std::begin(weights.table), std::end(weights.table), 1.0f);
  for (auto [label, weight] : spec.classWeights)
    weights.table[label] = weight;
  data.columns.push_back(std::move(weights));
  return {};
}

static Status checkLabels(const Column &labels, int64_t begin, int64_t size, int64_t classes) {
  for (int64_t i = begin; i < begin + size; ++i)
    if (labels.source.bytes[i] >= classes)
      return {MT_INVALID, labels.source.path + ": sample " + std::to_string(i) + " has label " +
                              std::to_string(labels.source.bytes[i]) + ", expected 0 to " +
                              std::to_string(classes - 1)};
  return {};
}

static Status selectRange(const DataSpec &spec, mtrun_dataset &data) {
  const IdxArray &images = data.columns[0].source;
  uint64_t samples = images.dims[0];
  for (const Column &column : data.columns)
    if (column.source.dims[0] != samples)
      return {MT_INVALID, images.path + " has " + std::to_string(samples) + " samples, " + column.source.path +
                              " has " + std::to_string(column.source.dims[0])};
  int64_t end = spec.end < 0 ? static_cast<int64_t>(samples) : spec.end;
  if (spec.begin >= end || static_cast<uint64_t>(end) > samples)
    return {MT_INVALID, "data: the range " + std::to_string(spec.begin) + ":" + std::to_string(end) +
                            " is not within the " + std::to_string(samples) + " samples of " + images.path};
  data.begin = spec.begin;
  data.size = end - spec.begin;
  return {};
}

static Status openDataset(const mtrun_plan *plan, const char *text, std::unique_ptr<mtrun_dataset> &data) {
  if (!plan || !text)
    return {MT_INVALID, "data: expected a plan and a specification, found NULL"};
  DataSpec spec;
  if (Status s = parseDataSpec(text, spec); !s.ok())
    return s;
  std::vector<mtrun_tensor_info> entries;
  if (Status s = entriesOf(plan, dataProgram(plan), entries); !s.ok())
    return s;
  const mtrun_tensor_info *input, *target;
  if (Status s = onlyEntry(entries, MTRUN_INPUT, input); !s.ok())
    return s;
  if (Status s = onlyEntry(entries, MTRUN_TARGET, target); !s.ok())
    return s;
  data = std::make_unique<mtrun_dataset>();
  data->plan = plan;
  data->columns.resize(target ? 2 : 1);
  if (Status s = openImages(spec, *input, data->columns[0]); !s.ok())
    return s;
  if (target)
    if (Status s = openLabels(spec, *target, data->columns[1]); !s.ok())
      return s;
  if (!spec.classWeights.empty())
    if (Status s = addClassWeights(spec, entries, *data); !s.ok())
      return s;
  if (Status s = selectRange(spec, *data); !s.ok())
    return s;
  std::optional<int64_t> classes = spec.classes ? spec.classes : outputClasses(plan);
  return target && classes ? checkLabels(data->columns[1], data->begin, data->size, *classes) : Status();
}

Status mtrun_dataset::bind(const char *program, Binding &binding) const {
  if (!mtrun_plan_has_program(plan, program))
    return {MT_INVALID, std::string("the plan has no program \"") + program + "\""};
  std::vector<mtrun_tensor_info> entries;
  if (Status s = entriesOf(plan, program, entries); !s.ok())
    return s;
  binding.columns.clear();
  for (const mtrun_tensor_info &entry : entries) {
    int found = entry.role == MTRUN_OUTPUT ? Binding::kOutput : Binding::kAbsent;
    for (size_t c = 0; c < columns.size(); ++c)
      if (columns[c].role == entry.role && columns[c].name == entry.name)
        found = static_cast<int>(c);
    if (found == Binding::kAbsent && !entry.optional)
      return {MT_INVALID,
              std::string("the data has nothing for \"") + entry.name + "\" of program \"" + program + "\""};
    binding.columns.push_back(found);
  }
  return {};
}

mt_status *mtrun_dataset_open(const mtrun_plan *plan, const char *spec, mtrun_dataset **dataset) {
  return guarded([&]() -> Status {
    std::unique_ptr<mtrun_dataset> data;
    Status status = openDataset(plan, spec, data);
    if (status.ok())
      *dataset = data.release();
    return status;
  });
}

int64_t mtrun_dataset_size(const mtrun_dataset *dataset) { return dataset->size; }

void mtrun_dataset_free(mtrun_dataset *dataset) { delete dataset; }

void mtrun_dataset_order(const mtrun_dataset *dataset, int64_t seed, int64_t epoch, int64_t *order) {
  epochOrder(seed, epoch, dataset->size, order);
}
