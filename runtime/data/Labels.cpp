// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Labels.h"
#include "runtime/data/SourceKind.h"
#include "runtime/plan/Signature.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace mtrun {

double valueAt(const Field &field, uint64_t sample, uint64_t element) {
  const uint8_t *from = field.bytes.get() + sample * field.stride + element * storedSize(field.type);
  auto load = [&]<typename T>(T value) {
    memcpy(&value, from, sizeof value);
    return value;
  };
  switch (field.type) {
  case Stored::F64:
    return load(double());
  case Stored::F32:
    return static_cast<double>(load(float()));
  case Stored::F16:
    return static_cast<double>(halfValue(load(uint16_t())));
  case Stored::U8:
  case Stored::Bool:
    return load(uint8_t());
  case Stored::I8:
    return load(int8_t());
  case Stored::U16:
    return load(uint16_t());
  case Stored::I16:
    return load(int16_t());
  case Stored::U32:
    return load(uint32_t());
  case Stored::I32:
    return load(int32_t());
  case Stored::I64:
    return static_cast<double>(load(int64_t()));
  }
  return 0;
}

static void replace(Field &field, std::vector<int64_t> &&values, uint64_t elements) {
  std::vector<uint8_t> bytes(values.size() * sizeof(int64_t));
  memcpy(bytes.data(), values.data(), bytes.size());
  field.type = Stored::I64;
  field.stride = elements * sizeof(int64_t);
  field.bytes = share(std::move(bytes));
}

static Status fromOneHot(Field &field, const mtrun_tensor_info &entry) {
  uint64_t classes = field.elements();
  std::vector<int64_t> labels;
  for (uint64_t s = 0; s < field.samples; ++s) {
    uint64_t ones = 0, zeros = 0, place = 0;
    for (uint64_t e = 0; e < classes; ++e) {
      double value = valueAt(field, s, e);
      place = value == 1 ? e : place;
      ones += value == 1;
      zeros += value == 0;
    }
    if (ones != 1 || zeros != classes - 1)
      return {MT_INVALID,
              field.where + ": target \"" + entry.name +
                  "\" takes a label per sample: expected labels, or "
                  "rows of one 1 and else 0, found " +
                  std::to_string(ones) + " ones and " + std::to_string(zeros) + " zeros among the " +
                  std::to_string(classes) + " values of sample " + std::to_string(s) +
                  "; rows of other numbers need a model whose loss takes them, for example categorical_crossentropy"};
    labels.push_back(static_cast<int64_t>(place));
  }
  field.shape.clear();
  replace(field, std::move(labels), 1);
  return {};
}

Status makeIntegers(Field &field, const mtrun_tensor_info &entry) {
  uint64_t elements = 1, own = field.elements();
  for (int32_t i = 1; i < entry.rank; ++i)
    elements *= static_cast<uint64_t>(entry.shape[i]);
  if ((entry.dtype != MT_I32 && entry.dtype != MT_I64) || !field.bytes)
    return {};
  if (entry.role == MTRUN_TARGET && elements == 1 && own > 1 && field.shape.size() == 1)
    return fromOneHot(field, entry);
  if (!isFloat(field.type) || own != elements)
    return {};
  std::vector<int64_t> values;
  for (uint64_t s = 0; s < field.samples; ++s)
    for (uint64_t e = 0; e < own; ++e) {
      double value = valueAt(field, s, e);
      if (std::nearbyint(value) != value || !(std::fabs(value) < 0x1p53)) {
        char text[32];
        snprintf(text, sizeof text, "%.9g", value);
        return {MT_INVALID, field.where + ": expected whole numbers for \"" + entry.name + "\": " + shapeText(entry) +
                                ", found " + text + " in sample " + std::to_string(s)};
      }
      values.push_back(static_cast<int64_t>(value));
    }
  replace(field, std::move(values), own);
  return {};
}

std::optional<int64_t> outputClasses(const Plan &plan, int32_t targetRank) {
  for (const char *program : {"predict", "eval_step", "train_step"}) {
    int outputs = 0;
    std::optional<int64_t> classes;
    for (const mtrun_tensor_info &entry : signatureOf(plan, program)) {
      if (entry.role != MTRUN_OUTPUT)
        continue;
      ++outputs;
      int64_t last = entry.shape[entry.rank - 1];
      classes = entry.rank == targetRank + 1 && last > 1 ? std::optional(last) : std::nullopt;
    }
    if (outputs == 1 && classes)
      return classes;
  }
  return std::nullopt;
}

static Status checkAll(const Column &column, const mtrun_dataset &data) {
  for (int64_t i = 0; column.limited() && !data.source && i < data.size; ++i)
    if (Status s = column.checkIntegers(column.at(data.sample(i)), data.sample(i)); !s.ok())
      return s;
  return {};
}

Status limitIntegers(const DataSpec &spec, const std::vector<const mtrun_tensor_info *> &entries, mtrun_dataset &data) {
  for (size_t i = 0; i < entries.size(); ++i) {
    Column &column = data.columns[i];
    std::optional<int64_t> limit = column.classes();
    if (!limit && column.hasLabels() && !spec.anyLabel)
      limit = spec.classes ? spec.classes : outputClasses(*data.plan, entries[i]->rank);
    if (entries[i]->limit >= 0 && !spec.uncheckedIds)
      limit = std::min(limit.value_or(INT64_MAX), entries[i]->limit);
    column.limitTo(limit);
    if (Status s = checkAll(column, data); !s.ok()) {
      std::string message = s.message();
      if (spec.source && spec.source->vocabulary && spec.vocabulary.empty())
        message += "; its tokens are bytes, since the plan has no vocabulary: with --vocabulary FILE they are "
                   "characters";
      for (const std::string &note :
           data.notes) // notes are not printed after an error, so add the note on how the file was read
        message += note.starts_with(column.field.where + ": ") ? "; " + note : "";
      return {s.code(), message};
    }
  }
  return {};
}

// Returns the column of the only target that has one label per sample.
static const Column *labelsOf(const mtrun_dataset &data, int &targets) {
  const Column *labels = nullptr;
  for (const Column &column : data.columns)
    if (column.hasLabels() && column.field.elements() == 1 && ++targets)
      labels = &column;
  return labels;
}

static std::string className(const mtrun_dataset &data, int64_t label) {
  bool named = label >= 0 && label < static_cast<int64_t>(data.classNames.size());
  return named ? data.classNames[static_cast<size_t>(label)] : std::to_string(label);
}

// Refuses a weight for a class that does not exist, which is usually a mistake of numbering.
static Status checkClassWeights(const mtrun_dataset &data, const Column &labels) {
  std::set<int64_t> there;
  for (int64_t i = 0; i < data.size; ++i)
    there.insert(labels.label(data.sample(i)));
  for (auto [label, weight] : data.classWeights)
    if (!there.count(label))
      return {MT_INVALID, "data: class-weight names class " + className(data, label) +
                              ", which has no sample; expected some of the " + std::to_string(there.size()) +
                              " classes from " + std::to_string(*there.begin()) + " to " +
                              std::to_string(*there.rbegin())};
  return {};
}

static void weigh(const mtrun_dataset &data, const Column &labels, Field &weights) {
  std::vector<uint8_t> bytes(labels.field.samples * sizeof(float)); // no more than the samples of the labels
  for (int64_t i = 0; i < static_cast<int64_t>(labels.field.samples); ++i) {
    float weight = 1;
    for (auto [of, given] : data.classWeights)
      weight = of == labels.label(i) ? given : weight;
    memcpy(bytes.data() + static_cast<size_t>(i) * sizeof weight, &weight, sizeof weight);
  }
  weights.bytes = share(std::move(bytes));
}

Status addClassWeights(const std::vector<mtrun_tensor_info> &entries, mtrun_dataset &data) {
  const mtrun_tensor_info *entry = nullptr;
  int inputs = 0, targets = 0;
  for (const mtrun_tensor_info &candidate : entries)
    if (candidate.role == MTRUN_SAMPLE_WEIGHT && ++inputs)
      entry = &candidate;
  const Column *labels = labelsOf(data, targets);
  if (inputs != 1 || targets != 1)
    return {MT_INVALID, "data: class-weight needs labels and a model that takes weights of samples (mtc compile "
                        "--sample-weights), found " +
                            std::to_string(targets) + " targets of labels and " + std::to_string(inputs) +
                            " inputs of weights"};
  if (Status s = data.classNames.empty() ? checkClassWeights(data, *labels) : Status(); !s.ok())
    return s; // classes with names are checked in numberLabels, when their numbers are known
  Field field;
  field.name = entry->name;
  field.where = labels->field.where;
  field.role = MTRUN_SAMPLE_WEIGHT;
  field.type = Stored::F32;
  field.samples = labels->field.samples;
  field.stride = sizeof(float);
  weigh(data, *labels, field);
  Column weights;
  if (Status s = weights.open(std::move(field), *entry, {}); !s.ok())
    return s;
  data.columns.push_back(std::move(weights));
  return {};
}

// Finds the number of each of the data's classes in `names`.
static Status matchNames(const mtrun_dataset &data, const std::vector<std::string> &names,
                         std::vector<int64_t> &numbers) {
  std::string unknown;
  for (const std::string &name : data.classNames) {
    auto found = std::find(names.begin(), names.end(), name);
    numbers.push_back(found - names.begin());
    if (found == names.end())
      unknown += (unknown.empty() ? "" : ", ") + name;
  }
  if (unknown.empty())
    return {};
  std::string known;
  for (const std::string &name : names)
    known += (known.empty() ? "" : ", ") + name;
  return {MT_INVALID,
          data.columns[0].field.where + ": expected classes that the model knows, " + known + ", found " + unknown};
}

Status numberLabels(mtrun_dataset &data, const std::vector<std::string> &names) {
  bool named = !data.classNames.empty() && !names.empty();
  if (named && data.classNames != names) {
    std::vector<int64_t> numbers;
    if (Status s = matchNames(data, names, numbers); !s.ok())
      return s;
    for (Column &column : data.columns) {
      if (column.role != MTRUN_TARGET || column.made() || isFloat(column.field.type) || column.field.elements() != 1)
        continue;
      std::vector<int64_t> labels;
      for (int64_t i = 0; i < static_cast<int64_t>(column.field.samples); ++i)
        if (int64_t label = column.label(i); label >= 0 && label < static_cast<int64_t>(numbers.size()))
          labels.push_back(numbers[static_cast<size_t>(label)]);
      if (labels.size() != column.field.samples || column.field.type != Stored::I64)
        continue; // this column is not the labels with names
      replace(column.field, std::move(labels), 1);
      if (Status s = checkAll(column, data); !s.ok())
        return s;
    }
    data.classNames = names;
  }
  int targets = 0;
  if (const Column *labels = labelsOf(data, targets);
      !data.classWeights.empty() && labels && !data.classNames.empty()) {
    if (Status s = checkClassWeights(data, *labels); !s.ok())
      return s;
    for (Column &column : data.columns)
      if (column.role == MTRUN_SAMPLE_WEIGHT)
        weigh(data, *labels, column.field);
  }
  return {};
}

} // namespace mtrun
