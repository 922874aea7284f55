// SPDX-License-Identifier: Apache-2.0
#include "test/unit/random/Comparison.h"
#include "compiler/Pipeline.h"
#include "compiler/codegen/common/CpuTarget.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "test/unit/random/Outcome.h"

using namespace mlir;

namespace mtc::test {
namespace {

class Journey {
public:
  Journey(const RandomModel &model, uint32_t seed, const Options &options)
      : model(model), seed(seed), options(options), module(model.module.get().clone()) {}

  Report run();
  // Called after every pass.
  void arrived(StringRef pass);

private:
  bool compile(Compilation &compilation);
  void check(const Outcome &found, const std::string &place);
  void runPlan(const Compilation &compilation);
  void recompute(const Outcome &found, const mtrun_options &devices);

  const RandomModel &model;
  uint32_t seed;
  const Options &options;
  OwningOpRef<ModuleOp> module, start; // start: the global view in the ops that are compiled
  bool shards = false;                 // the module is one shard's view
  bool again = false;                  // compiled for the second time
  Outcome expected;
  std::map<std::string, double> slack;
  Report report;
};

struct Observer : PassInstrumentation {
  explicit Observer(Journey &journey) : journey(journey) {}
  void runAfterPass(Pass *pass, Operation *) override {
    journey.arrived(pass->getArgument().empty() ? pass->getName() : pass->getArgument());
  }
  Journey &journey;
};

void Journey::arrived(StringRef pass) {
  if (again) {
    if (pass == "mt-recompute")
      module->walk([&](mt::KernelOp kernel) { report.again |= kernel.getRecomputed(); });
    return;
  }
  if (pass == "mt-block-logits")
    module->walk([&](mt::MatmulOp product) { report.blocks |= mt::turnOf(product).has_value(); });
  if (pass == "mt-differentiate") {
    Step whole = model.step;
    whole.shards = 1;
    expected = interpret(*module, whole);
    report.problem = expected.problem;
    return;
  }
  if (options.precision && pass == "mt-precision") {
    Step whole = model.step;
    whole.shards = 1;
    expected = interpret(*module, whole);
    report.problem = expected.problem;
  }
  if (pass == (options.precision ? "mt-precision" : "mt-decompose"))
    start = module->clone();
  if (options.precision && !start)
    return;
  shards |= pass == "mt-partition";
  if (options.fault && pass == options.fault->after && !(report.seeded = options.fault->seed(*module)))
    report.problem = "nothing to spoil";
  // What is left to find is what the fault did.
  bool look = options.passes && (!options.fault || report.seeded) && report.problem.empty();
  if (!look || !module->lookupSymbol<mt::ProgramOp>("train_step"))
    return;
  Step step = model.step;
  if (!shards)
    step.shards = 1;
  check(interpret(*module, step), "after " + pass.str());
}

void Journey::check(const Outcome &found, const std::string &place) {
  // A value that float32 and double round to two neighbours of 16 bits moves what it goes into by as much.
  double allowed = !options.precision || place.starts_with("after") ? tolerance
                   : StringRef(options.precision) == "bf16"         ? 0x1p-6
                                                                    : 0x1p-9;
  std::string problem = difference(found, expected, allowed, slack);
  if (!problem.empty() && slack.empty() && found.problem.empty() && start) {
    Step whole = model.step;
    whole.shards = 1;
    slack = roundingOf(*start, whole, expected);
    problem = difference(found, expected, allowed, slack);
    report.slack |= problem.empty();
  }
  if (!problem.empty())
    report.problem = place + ": " + problem;
}

bool Journey::compile(Compilation &compilation) {
  const Step &step = model.step;
  if (options.logitBytes)
    compilation.logitBytes = options.logitBytes;
  mt::Compilation parameters(*module);
  parameters.setBatch(step.batch);
  parameters.setShards(step.shards, (step.batch + step.shards - 1) / step.shards);
  parameters.setSeed(step.seed);
  if (options.precision)
    parameters.setPrecision(options.precision);
  parameters.setName("random");
  for (const Stage &stage : stages()) {
    if (!options.compile && StringRef(stage.name) == "allocate")
      break;
    if (StringRef(stage.name) == "schedule")
      compilation.options.device_memory = 0; // only recomputation has a limit
    PassManager passes(module->getContext(), ModuleOp::getOperationName(), OpPassManager::Nesting::Explicit);
    passes.addInstrumentation(std::make_unique<Observer>(*this));
    stage.build(passes, compilation);
    if (failed(passes.run(*module)) || failed(stage.check(*module))) {
      report.problem += std::string("stage ") + stage.name + " failed";
      return false;
    }
    if (!report.problem.empty())
      return false;
  }
  return true;
}

// First on devices and threads of the seed's choice, then on others: the bits are the same.
void Journey::runPlan(const Compilation &compilation) {
  auto spec = [&](uint32_t choice) {
    return "cpu:" + std::to_string(1 + choice % model.step.shards) + (choice / 8 % 3 ? "" : "x2");
  };
  std::string devices = spec(seed), others = spec(seed / 3 + 1);
  mtrun_options first = mtrun_options_init(), second = mtrun_options_init();
  first.no_pin = second.no_pin = 1;
  first.devices = devices.c_str();
  second.devices = others.c_str();
  second.private_variables = seed & 1;
  second.cpu = compilation.cpus.size() > 1 ? "x86-64-v3" : nullptr;
  Outcome found = execute(compilation.plan, model.step, first);
  report.hash = hashOf(found);
  check(found, "compiled, on " + devices);
  if (!report.problem.empty())
    return;
  std::string problem = differentBits(execute(compilation.plan, model.step, second), found);
  if (!problem.empty())
    report.problem = "on " + others + ", not " + devices + ": " + problem;
  else if (seed % 4 == 0 && !options.fault)
    recompute(found, second);
}

// The same model under a limit that nothing holds: what can runs twice, and every bit stays.
void Journey::recompute(const Outcome &found, const mtrun_options &devices) {
  module = model.module.get().clone();
  again = true;
  Compilation compilation;
  compilation.cpus = {"native"};
  compilation.options.recompute = "auto";
  compilation.options.device_memory = 1;
  if (!compile(compilation))
    return;
  mtrun_options options = devices;
  options.cpu = nullptr;
  std::string problem = differentBits(execute(compilation.plan, model.step, options), found);
  if (!problem.empty())
    report.problem = "recomputed: " + problem;
}

Report Journey::run() {
  std::string errors;
  ScopedDiagnosticHandler handler(module->getContext(), [&](Diagnostic &diagnostic) {
    errors += "\n" + diagnostic.str();
    return success();
  });
  Compilation compilation;
  // Now and then for two instruction sets.
  compilation.cpus =
      seed % 8 ? std::vector<std::string>{"native"} : defaultCpuTargets(mlir::mt::Compilation(*module).isHalf());
  if (compile(compilation) && options.compile)
    runPlan(compilation);
  if (!report.problem.empty())
    report.problem += errors;
  return report;
}

} // namespace

Report compare(const RandomModel &model, uint32_t seed, const Options &options) {
  return Journey(model, seed, options).run();
}

} // namespace mtc::test
