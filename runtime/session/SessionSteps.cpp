// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Check.h"
#include "runtime/session/Metric.h"
#include "runtime/session/SessionState.h"
#include "runtime/session/StartTimes.h"

#include <algorithm>
#include <limits>

namespace mtrun {

// A step with weight 0 has no value (its mean may be 0/0), so it adds 0 to the sums.
void Session::State::report(const Executable &executable, const mtrun_results &results) {
  size_t place = 0;
  for (size_t i = 0; i < executable.metricSums.size(); ++i) {
    const fb::Metric &metric = *executable.program->metrics()->Get(static_cast<uint32_t>(i));
    size_t size = executable.metricSums[i];
    double weight = executable.metricWeight(i);
    bool mean = metric.finalizer() == fb::Finalizer::Mean || metric.finalizer() == fb::Finalizer::RootMean;
    sums.resize(size);
    for (size_t k = 0; k < size; ++k)
      sums[k] = weight == 0 ? 0 : executable.metricValue(i, k) * (mean ? weight : 1);
    if (results.sums)
      std::copy(sums.begin(), sums.end(), results.sums + place);
    if (results.weights)
      results.weights[i] = weight;
    if (results.values)
      results.values[i] = metric.finalizer() == fb::Finalizer::Mean ? executable.metricValue(i, 0)
                                                                    : metricValue(metric, sums.data(), weight);
    place += size;
  }
  if (results.learning_rate)
    *results.learning_rate =
        executable.computesRate() ? executable.learningRate() : std::numeric_limits<double>::quiet_NaN();
}

Executable *Session::State::find(std::string_view program) {
  for (Executable &executable : executables)
    if (executable.program->name()->string_view() == program)
      return &executable;
  return nullptr;
}

Status Session::State::choose(std::string_view program, Executable *&executable, Step &step) {
  if (Status status = checkStep(*executable, step, 0); !status.ok())
    return status;
  LengthChoice::Chosen chosen = lengths->begin(program, step.tensors, step.n);
  executable = &executables[chosen.program];
  step.unchanged = step.unchanged && chosen.tensors == step.tensors;
  step.tensors = chosen.tensors;
  return {};
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Status Session::create(const Plan &plan, const mtrun_options *options, std::unique_ptr<Session> &session) {
  auto state = std::make_unique<State>();
  state->plan = &plan;
  for (const auto *name : Each(plan.tables().class_names()))
    state->classNames.push_back(name->str());
  if (options)
    state->options = *options;
  StartTimes times;
  auto log = [state = state.get()](int level, const std::string &message) { state->log(level, message); };
  if (Status status = chooseDevices(plan, state->options, log, *state); !status.ok())
    return status;
  times.add("start and code");
  if (Status status = state->group->reserve(state->memory.measure(plan, *state->group, state->layout),
                                            UnitWeights::bytes(plan) + LengthChoice::bytes(plan));
      !status.ok())
    return std::move(status).in("variables, shared buffers and arenas of " + std::to_string(state->spec.devices) +
                                (state->spec.devices == 1 ? " device: " : " devices: "));
  if (Status status = state->memory.allocate(plan, *state->group); !status.ok())
    return status;
  state->divided.plan = &plan.tables();
  times.add("memory");
  for (const fb::Program *program : Each(plan.tables().programs()))
    if (Status status = bindProgram(plan, *program, *state->group, state->layout, state->memory.map,
                                    state->executables.emplace_back());
        !status.ok())
      return status;
  for (Executable &executable : state->executables) {
    if (Status status = state->group->prepare(executable.bound); !status.ok())
      return status;
    executable.runs.resize(static_cast<size_t>(state->group->runsPerLaunch(executable.bound)));
    executable.tensors.resize(executable.runs.size() * executable.bound.signature.size());
    for (size_t size : executable.metricSums)
      state->sums.reserve(size);
  }
  times.add("programs");
  state->ones.make(plan);
  if (plan.tables().lengths())
    state->lengths = std::make_unique<LengthChoice>(plan);
  state->launches.reserve(static_cast<size_t>(state->group->maxInFlight()));
  // The caller may free its strings after this call.
  mtrun_options &stored = state->options;
  stored.devices = stored.cpu = stored.libraries = stored.tuning = stored.rendezvous = stored.secret = stored.weights =
      nullptr;
  std::unique_ptr<Session> created(new Session(std::move(state)));
  if (Status status = created->init(0); !status.ok())
    return status;
  times.add("initial values");
  if (uint64_t takenBytes = created->state_->group->takenMemory(); takenBytes > 0)
    created->log(0, "memory of the devices: " + std::to_string(created->state_->memory.peakBytes) +
                        " bytes promised, " + std::to_string(takenBytes) + " taken");
  created->log(0, "ready after " + times.text);
  created->log(0, std::string("running on ") + created->state_->group->kind() + ":" +
                      std::to_string(created->state_->spec.devices) + "x" +
                      std::to_string(created->state_->spec.threads) + ", target " + created->state_->group->target());
  session = std::move(created);
  return {};
}

const Plan &Session::plan() const { return *state_->plan; }

const std::vector<std::string> &Session::classNames() const { return state_->classNames; }

void Session::nameClasses(std::vector<std::string> names) { state_->classNames = std::move(names); }

const Status &Session::health() const { return state_->group->health(); }

Status Session::init(int64_t seed) {
  if (seed == 0)
    seed = state_->options.seed ? state_->options.seed : static_cast<int64_t>(state_->plan->tables().seed());
  if (state_->inFlight > 0)
    return {MT_INVALID, "expected no step in flight, found " + std::to_string(state_->inFlight)};
  state_->seed = seed;
  ++state_->changes;
  state_->divided.change();
  if (Executable *executable = state_->find("init"))
    state_->group->run(executable->bound,
                       {nullptr, static_cast<int64_t>(state_->plan->batch()), static_cast<uint64_t>(seed)});
  const auto *variables = state_->plan->tables().variables();
  for (uint32_t i = 0; i < count(variables); ++i)
    if (int64_t place = variables->Get(i)->initial(); place >= 0)
      if (Status status = setVariable(i, std::as_bytes(state_->plan->initialValues().subspan(
                                             static_cast<size_t>(place), variables->Get(i)->size())));
          !status.ok())
        return status;
  return health();
}

Status Session::State::checkStep(Executable &executable, const Step &step, size_t index) {
  if (Status status = plan->checkRows(step.n); !status.ok())
    return status;
  const auto *signature = executable.program->signature();
  const void **tensors = executable.tensors.data() + index * count(signature);
  for (uint32_t i = 0; i < count(signature); ++i) {
    const void *tensor = step.tensors ? step.tensors[i] : nullptr;
    const fb::SignatureEntry &entry = *signature->Get(i);
    if (!tensor && entry.optional())
      tensor = ones.of(entry.dtype());
    if (!tensor)
      return {MT_INVALID, "expected a pointer for " + entry.name()->str() + ", found null"};
    tensors[i] = tensor;
  }
  executable.runs[index] = {tensors, step.n, static_cast<uint64_t>(seed), step.unchanged};
  return {};
}

Status Session::begin(std::string_view program, std::span<const Step> steps) {
  Executable *executable = state_->find(program);
  if (!executable)
    return {MT_INVALID, "the plan has no program " + std::string(program)};
  if (state_->inFlight > 0 && state_->active != executable)
    return {MT_INVALID, "expected " + std::string(program) + " after all steps of the other program are finished"};
  if (state_->launches.size() == static_cast<size_t>(maxInFlight()))
    return {MT_INVALID, "expected at most " + std::to_string(maxInFlight()) +
                            " launches in flight, found one more; finish a launch first"};
  if (steps.size() != 1 && steps.size() != executable->runs.size())
    return {MT_INVALID, "expected 1 step or " + std::to_string(executable->runs.size()) + " in a launch, found " +
                            std::to_string(steps.size())};
  Step chosen = {};
  if (state_->lengths && state_->lengths->has(program)) { // one step per launch and one launch in flight
    chosen = steps[0];
    if (Status status = state_->choose(program, executable, chosen); !status.ok())
      return status;
    steps = {&chosen, 1};
  }
  for (size_t i = 0; i < steps.size(); ++i)
    if (Status status = state_->checkStep(*executable, steps[i], i); !status.ok())
      return status;
  if (program == "train_step")
    state_->divided.change();
  state_->active = executable;
  state_->launches.push_back(steps.size());
  state_->inFlight += steps.size();
  state_->group->begin(executable->bound, std::span(executable->runs).first(steps.size()));
  if (program == "train_step") { // CPUs have run it
    state_->see = nullptr;
    state_->corrupted = -1;
  }
  return {};
}

Status Session::finish(mtrun_results *results) {
  if (state_->inFlight == 0)
    return {MT_INVALID, "expected a step in flight, found none"};
  state_->group->finish();
  if (state_->lengths)
    state_->lengths->finish();
  --state_->inFlight;
  if (--state_->launches.front() == 0)
    state_->launches.erase(state_->launches.begin());
  if (results && health().ok())
    state_->report(*state_->active, *results);
  return health();
}

Status Session::run(std::string_view program, const void *const *tensors, int64_t n, mtrun_results *results) {
  if (state_->inFlight > 0)
    return {MT_INVALID, "expected no step in flight, found " + std::to_string(state_->inFlight)};
  Step step = {tensors, n};
  if (Status status = begin(program, {&step, 1}); !status.ok())
    return status;
  return finish(results);
}

int Session::maxInFlight() const { return state_->lengths ? 1 : state_->group->maxInFlight(); }

int Session::stepsPerLaunch(std::string_view program) const {
  const Executable *executable = state_->find(program);
  bool traced = executable && executable->bound.tracer; // traced times belong to one step
  return executable && !traced ? static_cast<int>(executable->runs.size()) : 1;
}

std::vector<int64_t> Session::lengthSteps() const {
  return state_->lengths ? state_->lengths->steps() : std::vector<int64_t>();
}

size_t Session::inFlight() const { return state_->inFlight; }

int Session::groupDevices() const { return state_->devices(); }

void Session::parallel(int64_t tasks, const std::function<void(int64_t)> &task) const {
  state_->group->parallel(tasks, task);
}

void Session::countRead(int64_t bytes, int64_t pictures) {
  state_->readBytes += bytes;
  state_->readPictures += pictures;
}

mtrun_session_info Session::info() const {
  mtrun_session_info info = {};
  info.devices = state_->spec.devices;
  info.threads_per_device = state_->spec.threads;
  info.variables_bytes = static_cast<int64_t>(state_->plan->tables().variables_bytes());
  info.peak_bytes = static_cast<int64_t>(state_->memory.peakBytes);
  info.collective_bytes = static_cast<int64_t>(state_->group->collectiveBytes());
  info.target = state_->group->target();
  info.seed = state_->seed;
  info.process = process();
  info.processes = processes();
  info.peak_flops = state_->group->rates().flops;
  info.peak_bandwidth = state_->group->rates().bytes;
  info.taken_bytes = static_cast<int64_t>(state_->group->takenMemory());
  return info;
}

int32_t Session::shards(int32_t device) const {
  if (device < 0 || device >= state_->spec.devices)
    return 0;
  return state_->devices() == 1 ? state_->layout.shards[0] : state_->layout.shards[static_cast<size_t>(device)];
}

void Session::log(int level, const std::string &message) const { state_->log(level, message); }

uint64_t Session::launches() const { return state_->group->launches(); }

void Session::fillTemporaries(uint8_t byte) {
  for (int d = 0; d < state_->group->devices(); ++d) {
    state_->group->fill(d, state_->memory.map.arenas[d], byte, state_->memory.arenaBytes[d]);
    for (std::byte *arena : state_->memory.map.takers)
      state_->group->fill(d, arena, byte, state_->memory.arenaBytes[d]);
    state_->group->fill(d, state_->memory.map.shared[d], byte, state_->memory.sharedBytes);
    if (uint64_t bytes = state_->memory.sumsBytes[static_cast<size_t>(d)])
      state_->group->fill(d, state_->memory.map.sums[d], byte, bytes);
  }
}

} // namespace mtrun
