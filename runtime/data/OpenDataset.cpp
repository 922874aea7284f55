// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/OpenDataset.h"
#include "runtime/data/FitLength.h"
#include "runtime/data/Labels.h"
#include "runtime/data/SourceKind.h"
#include "runtime/plan/Check.h"
#include "runtime/plan/Signature.h"
#include "runtime/support/column_rules.h"
#include "runtime/support/suggest.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

using namespace mtrun;

// Returns the program whose inputs a data source must provide.
static const char *dataProgram(const Plan &plan) {
  for (const char *program : {"train_step", "eval_step"})
    if (plan.program(program))
      return program;
  return "predict";
}

// Returns a suggestion for the end of a message about an unknown name.
static std::string meant(const std::string &name, const std::vector<mtrun_tensor_info> &entries) {
  std::vector<std::string> known;
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role != MTRUN_OUTPUT)
      known.push_back(entry.name);
  return didYouMean(name, known);
}

static std::string namesOf(const std::vector<mtrun_tensor_info> &entries) {
  std::string names;
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role != MTRUN_OUTPUT)
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

// Returns true for the entry's name. The target of an output may also have the output's name, as in Keras.
static bool isNamed(const mtrun_tensor_info &entry, const std::string &name) {
  return name == entry.name || (entry.role == MTRUN_TARGET && name + "_target" == entry.name);
}

// Finds the entry that a field provides: by name, or the only entry of its role. Null: the model does not use the
// field.
static Status findEntry(const DataSpec &spec, const Field &field, const std::vector<mtrun_tensor_info> &entries,
                        const mtrun_tensor_info *&found) {
  found = nullptr;
  int count = 0;
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role != MTRUN_OUTPUT && entry.name == field.name)
      return found = &entry, Status();
  for (const mtrun_tensor_info &entry : entries)
    if (isNamed(entry, field.name))
      return found = &entry, Status();
  if (field.spare)
    return {};
  if (field.named)
    return {MT_INVALID,
            field.where + ": the model has nothing named \"" + field.name + "\"; expected " + namesOf(entries) +
                (spec.paths.empty() ? "" : ", or x= and y=, which name the only input and the only target") +
                meant(field.name, entries)};
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role == field.role && ++count == 1)
      found = &entry;
  if (count > 1 || (count == 0 && field.role == MTRUN_INPUT))
    return {MT_INVALID, spec.kind + " data has one input and one target, the model has " + std::to_string(count) +
                            (field.role == MTRUN_INPUT ? " inputs" : " targets")};
  return {};
}

static Status selectRange(const DataSpec &spec, mtrun_dataset &data) {
  if (data.source && data.source->inOrder()) {
    data.size = -1;
    return spec.begin == 0 && spec.end < 0 ? Status() : Status(MT_INVALID, "data: a range needs data of known length");
  }
  uint64_t begin, end;
  if (Status s = sampleRange(spec, data.columns[0].field, begin, end); !s.ok())
    return s;
  data.begin = static_cast<int64_t>(begin);
  data.size = static_cast<int64_t>(end - begin);
  return {};
}

// Returns how the model rescales an input; null if it does not.
static const mt::plan::InputScaling *scalingOf(const Plan &plan, std::string_view input) {
  for (const mt::plan::InputScaling *scaling : Each(plan.tables().input_scaling()))
    if (scaling->input()->string_view() == input)
      return scaling;
  return nullptr;
}

// Returns true if the model scales values of 0 to 255 to a range of about 1, as Rescaling(1/255) does.
static bool takesBytes(const Plan &plan, std::string_view input) {
  const mt::plan::InputScaling *scaling = scalingOf(plan, input);
  return scaling && !scaling->per_channel() && std::fabs(scaling->scale()) <= 1.0 / 64;
}

// Warns if a table has columns of very different scales and the model does not normalize them: training then fails to
// converge.
static void checkRange(const DataSpec &spec, mtrun_dataset &data) {
  constexpr double wide = 255;
  for (const Column &column : data.columns) {
    bool unknown = spec.source && spec.source->anyScale && !spec.scaled;
    if (!unknown || column.role != MTRUN_INPUT || column.field.type != Stored::F64 ||
        (column.dtype != MT_F32 && column.dtype != MT_F64) || column.limited() || scalingOf(*data.plan, column.name))
      continue;
    double least = 0, most = 0, value;
    for (uint64_t i = 0, count = column.field.samples * column.field.elements(); i < count; ++i) {
      memcpy(&value, column.field.bytes.get() + 8 * i, 8);
      least = std::fmin(least, value);
      most = std::fmax(most, value);
    }
    char range[80];
    snprintf(range, sizeof range, "%.6g to %.6g", least, most);
    if (std::fmax(-least, most) > wide)
      data.notes.push_back("input \"" + column.name + "\": values of " + range +
                           ", and the model does not normalise them; add Keras' Normalization, adapted to the data, or "
                           "mean= and std=; scale=1 accepts the values");
  }
}

// Warns about values that are scaled twice or not at all: the model would train to a worse result.
static void checkScaling(const DataSpec &spec, mtrun_dataset &data) {
  double factor = spec.scale.value_or(1) / spec.divisor;
  for (const Column &column : data.columns) {
    bool bytes = column.made() || column.field.type == Stored::U8;
    if (column.role != MTRUN_INPUT || !bytes || (column.dtype != MT_F32 && column.dtype != MT_F64))
      continue;
    std::string input = "input \"" + column.name + "\": ";
    bool model = scalingOf(*data.plan, column.name) != nullptr;
    if (!model && column.elements > 1 && factor == 1 && !spec.scaled)
      data.notes.push_back(input + "values of 0 to 255, and the model does not rescale them; scale=1/255 divides them, "
                                   "scale=1 says that they are meant");
    bool undivided = spec.byDefault && takesBytes(*data.plan, column.name);
    if (model && !undivided && (spec.scaled || factor != 1) && (factor != 1 || !spec.mean.empty()))
      data.notes.push_back(input +
                           (spec.scaled ? "the data is scaled, and the model scales it once more"
                                        : spec.kind + ": divides by 255, and the model scales once more") +
                           "; scale=1 leaves the values as they are");
  }
}

static std::string changesOf(const DataSpec &spec) {
  std::string text = "flip " + std::to_string(spec.flipAcross) + std::to_string(spec.flipDown) + ", crop " +
                     std::to_string(spec.crop) + ", by length " + std::to_string(spec.groupByLength) + ", weights";
  for (auto [label, weight] : spec.classWeights)
    text += " " + std::to_string(label) + ":" + std::to_string(weight);
  return text;
}

static Status bindTable(const DataSpec &spec, Table &&table, mtrun_dataset &data) {
  std::vector<mtrun_tensor_info> entries = signatureOf(*data.plan, dataProgram(*data.plan));
  data.notes = std::move(table.notes);
  data.classNames = std::move(table.classes);
  for (const std::string &name : data.classNames) // files with these names must be UTF-8
    if (!isUtf8(name))
      return {MT_INVALID,
              table.fields[0].where + ": expected names of classes in UTF-8, found \"" + printable(name) + "\""};
  data.allowNan = spec.allowNan;
  data.groupByLength = spec.groupByLength;
  if (spec.groupByLength && (data.source || !data.plan->tables().lengths()))
    return {MT_INVALID, "data: group=length needs samples in memory and a plan of several lengths (mtc compile "
                        "--lengths), found " +
                            std::string(data.source ? "a callback" : "a plan of one")};
  data.keepDamaged = spec.keepDamaged;
  data.changes = changesOf(spec);
  data.classWeights = spec.classWeights;
  std::vector<const mtrun_tensor_info *> bound;
  for (Field &field : table.fields) {
    const mtrun_tensor_info *entry = nullptr;
    if (Status s = findEntry(spec, field, entries, entry); !s.ok())
      return s;
    if (!entry)
      continue; // the model does not use this field
    // A field with the entry's name takes precedence over a field of its role.
    bool taken = std::find(bound.begin(), bound.end(), entry) != bound.end(), own = isNamed(*entry, field.name);
    auto named = [&](const Field &other) { return isNamed(*entry, other.name); };
    if (!own && (taken || std::any_of(table.fields.begin(), table.fields.end(), named)))
      continue;
    if (taken)
      return {MT_INVALID, field.where + ": expected one value for \"" + entry->name + "\", found \"" + field.name +
                              "\" in addition to another"};
    auto index = static_cast<uint32_t>(entry - entries.data());
    if (Status s = data.source ? Status() : fitLength(*data.plan, dataProgram(*data.plan), index, field); !s.ok())
      return s;
    if (Status s = data.source ? Status() : makeIntegers(field, *entry); !s.ok())
      return s;
    data.columns.emplace_back();
    bound.push_back(entry);
    std::optional<DataSpec> undivided;
    if (spec.byDefault && takesBytes(*data.plan, entry->name)) {
      undivided = spec;
      undivided->scale.reset();
      undivided->divisor = 1;
    }
    if (Status s = data.columns.back().open(std::move(field), *entry, undivided ? *undivided : spec); !s.ok())
      return s;
  }
  if (data.columns.empty())
    return {MT_INVALID, spec.kind + " data has none of the model's names: expected " + namesOf(entries)};
  checkScaling(spec, data);
  if (!spec.classWeights.empty() && data.source)
    return {MT_INVALID, "data: class-weight needs samples in memory; a callback can write the weights itself"};
  if (Status s = selectRange(spec, data); !s.ok())
    return s;
  if (Status s = limitIntegers(spec, bound, data); !s.ok())
    return s;
  checkRange(spec, data);
  return spec.classWeights.empty() ? Status() : addClassWeights(entries, data);
}

// Completes the specification from the model: names, tokens per sample, vocabulary, and the columns file.
static Status completeSpec(const Plan &plan, DataSpec &spec) {
  int inputs = 0;
  int64_t length = 0;
  for (const mtrun_tensor_info &entry : signatureOf(plan, dataProgram(plan))) {
    if (entry.role == MTRUN_INPUT && ++inputs)
      length = entry.rank == 2 ? entry.shape[1] : 0;
    if (entry.role != MTRUN_OUTPUT)
      spec.wanted.push_back({entry.name, entry.role});
  }
  if (spec.length == 0 && inputs == 1)
    spec.length = length;
  if (spec.source && spec.source->vocabulary && plan.tables().vocabulary())
    for (const auto *character : *plan.tables().vocabulary())
      spec.vocabulary.push_back(character->str());
  if (!spec.source || !spec.source->columns || !plan.tables().columns())
    return {};
  auto rules = std::make_shared<ColumnRules>();
  Status status = parseColumnRules(plan.tables().columns()->string_view(), *rules); // verified with the plan
  spec.rules = std::move(rules);
  return status;
}

Status mtrun::openDataset(const Plan &plan, const char *text, std::unique_ptr<mtrun_dataset> &data) {
  DataSpec spec;
  Table table;
  if (Status s = parseDataSpec(text, spec); !s.ok())
    return s;
  if (Status s = completeSpec(plan, spec); !s.ok())
    return s;
  if (Status s = openTable(spec, table); !s.ok())
    return s;
  data = std::make_unique<mtrun_dataset>();
  data->plan = &plan;
  data->readers = readerThreads(spec);
  return bindTable(spec, std::move(table), *data);
}

Status mtrun::openOwnDataset(const Plan &plan, const mtrun_field *fields, int32_t count, int64_t samples,
                             const mtrun_source *source, const char *keys, std::unique_ptr<mtrun_dataset> &data) {
  DataSpec spec;
  Table table;
  spec.kind = source ? "source" : "array";
  if (samples < 1 && !(source && samples == -1))
    return {MT_INVALID, std::string("expected at least 1 sample") + (source ? ", or -1 for an unknown number" : "") +
                            ", found " + std::to_string(samples)};
  if (Status s = parseDataKeys(keys ? keys : "", spec); !s.ok())
    return s;
  if (Status s = openFields(fields, count, samples, !source, table); !s.ok())
    return s;
  data = std::make_unique<mtrun_dataset>();
  data->plan = &plan;
  if (source) {
    data->source = std::make_shared<Source>(*source, table);
    data->readers = data->source->threads();
  }
  return bindTable(spec, std::move(table), *data);
}
