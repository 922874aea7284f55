// SPDX-License-Identifier: Apache-2.0
//
// The first line of a receipt.
#include "runtime/checkpoint/Resume.h"
#include "runtime/data/Split.h"
#include "runtime/plan/Check.h"
#include "runtime/plan/Signature.h"
#include "runtime/receipt/Recorder.h"
#include "runtime/receipt/RunOptions.h"
#include "runtime/support/hash_text.h"

namespace mtrun {

using Json = nlohmann::json;

Digest stepsDigest(const Plan &plan) {
  auto digest = [](std::span<const uint8_t> bytes) {
    return sha256({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  };
  std::vector<uint8_t> tables = stepsTables(plan.tables());
  Sha256 both;
  both.add(digest(tables));
  both.add(digest(plan.constants()));
  both.add(hashText(plan.stepsHash()).data(), 32); // covers the kernels
  return both.finish();
}

static std::string textOf(const flatbuffers::String *text) { return text ? text->str() : ""; }

// Devices of one class compute the same bits: all CPUs are one class.
static std::string classOf(const Session &session) {
  std::string text = session.conditions();
  if (size_t at = text.find("\nversion: "); at != std::string::npos)
    text.resize(at); // the version of MTC is for people: the plan's hash says what is computed
  if (text == "devices: cpu")
    return "cpu";
  std::string tuning = session.tuning();
  return text + (tuning.empty() ? "" : "\ntuning: " + tuning);
}

static Json describePlan(const Plan &plan) {
  const mt::plan::Plan &tables = plan.tables();
  std::string precision = textOf(tables.precision());
  return {{"batch", tables.batch()},
          {"model", textOf(tables.model())},
          {"precision", precision.empty() ? "f32" : precision},
          {"sha256", hexadecimal(stepsDigest(plan))},
          {"shards", tables.shards()}};
}

// The entries of a row's digest, in the order of the plan.
static Json describeEntries(const Plan &plan, const mtrun_dataset &data, Status &status) {
  Json entries = Json::array();
  Binding binding;
  status = data.bind("train_step", binding);
  std::vector<mtrun_tensor_info> signature = signatureOf(plan, "train_step");
  for (size_t i = 0; i < binding.columns.size() && status.ok(); ++i)
    if (binding.columns[i] >= 0)
      entries.push_back({signature[i].name, mt_dtype_name(signature[i].dtype),
                         data.columns[static_cast<size_t>(binding.columns[i])].rowBytes});
  return entries;
}

Status describeRun(const Session &session, const RunFacts &facts, const mtrun_loop_options &options, int64_t every,
                   Json &head) {
  const Plan &plan = session.plan();
  if (plan.tables().fast())
    return {MT_INVALID, "expected a plan of the exact mode for a receipt, found one of the fast mode"};
  if (options.allow_nan || facts.data->allowNan)
    return {MT_INVALID, "expected finite numbers for a receipt, found the option that allows others (--allow-nan, or "
                        "nan=yes of the data): the bits of NaN are not fixed"};
  if (facts.data->size < 0)
    return {MT_INVALID, "expected data of known length for a receipt, found data of unknown length"};
  Status status;
  Json train = {{"changes", facts.data->changes}, {"entries", describeEntries(plan, *facts.data, status)}};
  if (!status.ok())
    return status;
  for (const OrderFact &fact : orderFacts)
    train[fact.member] = fact.of(facts.state);
  train["content"] = facts.state.content;
  Json variables = Json::array();
  for (const auto *variable : Each(plan.tables().variables()))
    variables.push_back({variable->name()->str(), variable->size()});
  Json run = runOptions(options);
  run["seed"] = facts.state.seed;
  Json validation;
  if (facts.validation)
    validation = {{"content", contentHash(*facts.validation)}, {"samples", facts.validation->size}};
  head = {{"class", classOf(session)},
          {"data", {{"train", train}, {"validation", validation}}},
          {"every", every},
          {"format", "mtc-receipt"},
          {"chunk", chunkBytes},
          {"plan", describePlan(plan)},
          {"run", run},
          {"variables", variables},
          {"version", receiptVersion}};
  return {};
}

} // namespace mtrun
