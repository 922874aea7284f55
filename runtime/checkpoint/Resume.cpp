// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Resume.h"
#include "runtime/checkpoint/Variables.h"
#include "runtime/support/greeting.h"
#include "runtime/support/hash_text.h"

namespace mtrun {

Status restore(Session &session, const Checkpoint &checkpoint, bool force, bool &samePlan) {
  const Plan &plan = session.plan();
  samePlan = plan.stepsHash() == checkpoint.manifest.plan || plan.hash() == checkpoint.manifest.plan;
  if (!samePlan && !force) {
    const std::string model = plan.tables().model() ? plan.tables().model()->str() : "";
    return {MT_INVALID, checkpoint.path + ": made by the plan of model " + checkpoint.manifest.model + " with hash " +
                            hashText(checkpoint.manifest.plan) + ", this is the plan of model " + model +
                            " with hash " + hashText(plan.stepsHash()) +
                            "; if its variables fit, --force continues with them, to other bits"};
  }
  if (const std::string now = session.tuning(); now != checkpoint.manifest.tuning && !force) {
    auto named = [](const std::string &hash) { return hash.empty() ? std::string("none") : hash; };
    return {MT_INVALID, checkpoint.path + ": made with another tuning file: expected " +
                            named(checkpoint.manifest.tuning) + ", found " + named(now) +
                            "; --force continues with the current file, to other bits"};
  }
  const std::string &then = checkpoint.manifest.conditions;
  if (std::string differs = then.empty() ? "" : difference(then, session.conditions()); !differs.empty() && !force)
    return {MT_INVALID, checkpoint.path + ": made under conditions that compute other bits: " + differs +
                            "; --force continues under the current conditions, to other bits"};
  int64_t before = session.info().seed;
  // init() sets the seed of random numbers. The variables that it computes are then replaced.
  if (Status s = session.init(checkpoint.manifest.state.seed); !s.ok())
    return s;
  Status status = setVariables(session, checkpoint.path + "/" + variablesFile, checkpoint.tensors);
  if (!status.ok())
    (void)session.init(before);
  return status;
}

Status compareData(const LoopState &then, const LoopState &now, const std::string &where) {
  for (const OrderFact &fact : orderFacts)
    if (int64_t expected = fact.of(then), found = fact.of(now); expected != found)
      return {MT_INVALID, where + ": made with other data: expected " + fact.what + ": " + std::to_string(expected) +
                              ", found " + std::to_string(found) +
                              "; --force begins the epoch again with the current data"};
  if (!then.content.empty() && !now.content.empty() && then.content != now.content)
    return {MT_INVALID, where +
                            ": made with other data: expected the values of the first and the last sample, and the "
                            "options that change values, of hash " +
                            then.content + ", found " + now.content +
                            "; --force begins the epoch again with the current data"};
  return {};
}

} // namespace mtrun
