// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Manifest.h"

#include "runtime/support/json_text.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace mtrun {

using Json = nlohmann::json;

constexpr int64_t manifestVersion = 1;
constexpr int64_t maxSteps = int64_t{1} << 53; // more than any run has; the sum of two fits into int64_t

// Hexadecimal floats keep every bit, and can be NaN and infinity, which JSON numbers cannot.
static std::string exact(double value) {
  char text[40];
  snprintf(text, sizeof text, "%a", value);
  return text;
}

static double exactValue(const Json &json) {
  const std::string &text = json.get_ref<const std::string &>();
  char *end = nullptr;
  double value = strtod(text.c_str(), &end);
  if (text.empty() || *end)
    throw std::runtime_error("expected a hexadecimal float, found \"" + text + "\"");
  return value;
}

static void addExact(JsonDocument &json, const char *key, const std::vector<double> &values) {
  json.beginArray(key);
  for (double value : values)
    json.add("", exact(value));
  json.end();
}

static void addTexts(JsonDocument &json, const char *key, const std::vector<std::string> &texts) {
  json.beginArray(key);
  for (const std::string &text : texts)
    json.add("", text);
  json.end();
}

static std::vector<double> exactValues(const Json &json) {
  std::vector<double> values;
  for (const Json &value : json)
    values.push_back(exactValue(value));
  return values;
}

static void addState(JsonDocument &json, const LoopState &state) {
  json.beginObject("state");
  json.add("seed", state.seed);
  json.add("epoch", state.epoch);
  json.add("position", state.position);
  json.add("step", state.step);
  json.beginObject("data");
  json.add("samples", state.samples);
  json.add("batch", state.batch);
  json.add("steps_per_epoch", state.stepsPerEpoch);
  json.add("shuffle", state.shuffle);
  json.add("window", state.window);
  json.add("choice", state.choice);
  if (!state.content.empty())
    json.add("content", state.content);
  json.add("drop_remainder", state.dropRemainder);
  json.end();
  addTexts(json, "class_names", state.classNames);
  addExact(json, "sums", state.sums);
  addExact(json, "totals", state.totals);
  json.beginObject("history");
  addTexts(json, "names", state.names);
  addExact(json, "values", state.history);
  json.end();
  json.beginObject("callbacks");
  for (const auto &[name, values] : state.callbacks)
    addExact(json, name.c_str(), values);
  json.end();
  json.add("stopped_early", state.stoppedEarly);
  json.beginObject("rate");
  json.add("scheduled", exact(state.scheduledRate));
  json.add("given", exact(state.givenRate));
  json.end();
  json.end();
}

static void addTensor(JsonDocument &json, const TensorRecord &tensor) {
  json.beginObject();
  json.add("name", tensor.name);
  json.add("dtype", std::string_view(mt_dtype_name(tensor.dtype)));
  json.beginArray("shape");
  for (int64_t dim : tensor.shape)
    json.add("", dim);
  json.end();
  json.add("hash", hashText(tensor.hash));
  json.end();
}

// nlohmann::json would round a float and wrap a number that is too large.
static int64_t integer(const Json &json, const char *name) {
  bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= INT64_MAX : json.is_number_integer();
  if (!fits)
    throw std::runtime_error(std::string("expected a whole number of 64 bits as ") + name + ", found " + json.dump());
  return json.get<int64_t>();
}

static int64_t count(const Json &json, const char *name, int64_t most = INT64_MAX) {
  int64_t value = integer(json.at(name), name);
  if (value < 0 || value > most)
    throw std::runtime_error(std::string("expected ") + name + " of 0 to " + std::to_string(most) + ", found " +
                             std::to_string(value));
  return value;
}

static std::vector<int64_t> shapeOf(const Json &json) {
  std::vector<int64_t> shape;
  for (const Json &dim : json)
    shape.push_back(integer(dim, "a dimension"));
  return shape;
}

static void expectAtMost(const char *what, int64_t found, const char *ofWhat, int64_t most) {
  if (found > most)
    throw std::runtime_error(std::string("expected ") + what + " of at most " + std::to_string(most) + ", " + ofWhat +
                             ", found " + std::to_string(found));
}

// Checks that the numbers of a state are consistent.
static void checkState(const LoopState &state) {
  expectAtMost("position", state.position, "the steps since the beginning", state.step);
  if (state.stepsPerEpoch > 0) // 0: unknown
    expectAtMost("position", state.position, "the steps of an epoch", state.stepsPerEpoch);
  int64_t all = 0;
  if (__builtin_mul_overflow(state.epoch, state.stepsPerEpoch, &all))
    throw std::runtime_error("expected epochs whose steps can be counted, found " + std::to_string(state.epoch) +
                             " of " + std::to_string(state.stepsPerEpoch) + " steps");
  if (state.sums.size() < state.totals.size())
    throw std::runtime_error("expected at least " + std::to_string(state.totals.size()) + " sums, found " +
                             std::to_string(state.sums.size()));
  if (state.names.empty() ? !state.history.empty() : state.history.size() % state.names.size() != 0)
    throw std::runtime_error("expected rows of " + std::to_string(state.names.size()) +
                             " values in the history, found " + std::to_string(state.history.size()) + " values");
  if (!state.names.empty())
    expectAtMost("rows of the history", static_cast<int64_t>(state.history.size() / state.names.size()),
                 "the complete epochs", state.epoch);
}

static LoopState stateOf(const Json &json) {
  LoopState state;
  state.seed = integer(json.at("seed"), "seed");
  state.epoch = count(json, "epoch", maxSteps);
  state.position = count(json, "position", maxSteps);
  state.step = count(json, "step", maxSteps);
  const Json &data = json.at("data");
  state.samples = count(data, "samples");
  state.batch = count(data, "batch");
  state.stepsPerEpoch = count(data, "steps_per_epoch");
  state.window = count(data, "window");
  // older checkpoints have no `choice` and held out the last samples
  state.choice = data.contains("choice") ? count(data, "choice") : 0;
  if (auto content = data.find("content"); content != data.end())
    state.content = hashText(hashOfText(content->get<std::string>()));
  state.shuffle = data.at("shuffle").get<bool>();
  state.dropRemainder = data.at("drop_remainder").get<bool>();
  if (auto names = json.find("class_names"); names != json.end())
    state.classNames = names->get<std::vector<std::string>>();
  state.sums = exactValues(json.at("sums"));
  state.totals = exactValues(json.at("totals"));
  state.names = json.at("history").at("names").get<std::vector<std::string>>();
  state.history = exactValues(json.at("history").at("values"));
  for (const auto &[name, values] : json.at("callbacks").items())
    state.callbacks[name] = exactValues(values);
  state.stoppedEarly = json.value("stopped_early", false); // older checkpoints have no `stopped_early`
  if (auto rate = json.find("rate"); rate != json.end()) {
    state.scheduledRate = exactValue(rate->at("scheduled"));
    state.givenRate = exactValue(rate->at("given"));
  }
  checkState(state);
  return state;
}

std::string writeManifest(const Manifest &manifest) {
  JsonDocument json;
  json.add("format", std::string_view("mtc checkpoint"));
  json.add("version", manifestVersion);
  json.add("model", manifest.model);
  json.add("plan", hashText(manifest.plan));
  if (!manifest.tuning.empty())
    json.add("tuning", manifest.tuning);
  if (!manifest.conditions.empty())
    json.add("conditions", manifest.conditions);
  if (manifest.monitored) {
    json.beginObject("monitor");
    json.add("name", manifest.monitor);
    json.add("value", exact(*manifest.monitored));
    json.end();
  }
  addState(json, manifest.state);
  json.beginObject("variables");
  json.add("file", std::string_view(variablesFile));
  json.add("bytes", static_cast<int64_t>(manifest.fileSize));
  json.add("header", hashText(manifest.header));
  json.beginArray("tensors");
  for (const TensorRecord &tensor : manifest.tensors)
    addTensor(json, tensor);
  json.end();
  json.end();
  std::string text = std::move(json).finish();
  seal(text);
  return text;
}

static Status checkHash(const std::string &text, const std::string &where) {
  if (text.size() < sealBytes)
    return {MT_CORRUPT, where + ": expected at least " + std::to_string(sealBytes) + " bytes, found " +
                            std::to_string(text.size())};
  Hash128 hash;
  if (!isSealed(text, hash))
    return {MT_CORRUPT, where + ": the " + std::to_string(text.size()) + " bytes do not end with their own hash"};
  return {};
}

static void fill(const Json &json, Manifest &manifest) {
  manifest.model = json.at("model").get<std::string>();
  manifest.plan = hashOfText(json.at("plan").get<std::string>());
  if (auto tuning = json.find("tuning"); tuning != json.end())
    manifest.tuning = hashText(hashOfText(tuning->get<std::string>()));
  if (auto conditions = json.find("conditions"); conditions != json.end())
    manifest.conditions = conditions->get<std::string>();
  manifest.state = stateOf(json.at("state"));
  if (auto monitor = json.find("monitor"); monitor != json.end()) {
    manifest.monitor = monitor->at("name").get<std::string>();
    manifest.monitored = exactValue(monitor->at("value"));
  }
  const Json &variables = json.at("variables");
  manifest.fileSize = static_cast<uint64_t>(count(variables, "bytes"));
  manifest.header = hashOfText(variables.at("header").get<std::string>());
  for (const Json &entry : variables.at("tensors")) {
    TensorRecord tensor;
    tensor.name = entry.at("name").get<std::string>();
    std::string dtype = entry.at("dtype").get<std::string>();
    int type = MT_F32;
    while (type <= MT_U8 && dtype != mt_dtype_name(static_cast<mt_dtype>(type)))
      ++type;
    if (type > MT_U8)
      throw std::runtime_error("tensor \"" + tensor.name + "\": expected a dtype, found \"" + dtype + "\"");
    tensor.dtype = static_cast<mt_dtype>(type);
    tensor.shape = shapeOf(entry.at("shape"));
    tensor.hash = hashOfText(entry.at("hash").get<std::string>());
    manifest.tensors.push_back(std::move(tensor));
  }
}

Status parseManifest(const std::string &text, const std::string &where, Manifest &manifest) {
  manifest = {};
  if (Status s = checkHash(text, where); !s.ok())
    return s;
  try {
    Json json = Json::parse(text);
    int64_t version = integer(json.at("version"), "version");
    if (json.at("format") != "mtc checkpoint" || version != manifestVersion)
      return {MT_CORRUPT, where + ": expected a checkpoint of version " + std::to_string(manifestVersion) +
                              ", found version " + std::to_string(version)};
    fill(json, manifest);
  } catch (const std::exception &error) { // from the JSON parser, or thrown above
    return {MT_CORRUPT, where + ": " + error.what()};
  }
  return {};
}

} // namespace mtrun
