// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Session.h"

#include "runtime/device/Collectives.h"
#include "runtime/plan/Check.h"
#include "runtime/session/Bind.h"
#include "runtime/session/DeviceSpec.h"
#include "runtime/session/Metric.h"
#include "runtime/session/StartTracer.h"
#include "runtime/session/Subtrees.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mtrun {

namespace fb = ::mt::plan;

struct Session::State {
  const Plan *plan = nullptr;
  mtrun_options options = {};
  DeviceSpec spec;
  std::unique_ptr<DeviceGroup> group;
  DeviceLayout layout;
  MemoryMap memory;
  std::vector<Executable> executables;
  std::unique_ptr<Tracer> tracer; // of train_step
  std::vector<std::byte> ones[6]; // for sample weights that the caller leaves out, by type
  int64_t seed = 0;               // of the last init
  uint64_t sharedBytes = 0;       // of one shared block
  uint64_t peakBytes = 0;
  std::vector<double> sums;      // of one metric of a step
  std::vector<std::byte> mirror; // of the first device's variables, where the host cannot read them

  void log(int level, const std::string &message) const {
    if (options.log)
      options.log(options.log_user, level, message.c_str());
  }

  // Of the group: one where those of the spec share variables.
  int devices() const { return static_cast<int>(layout.leaves.size()); }

  Status chooseDevices();
  Status allocate();
  Status allocateBlock(int device, uint64_t bytes, std::byte *&memory);
  uint64_t onesBytes() const;
  void makeOnes();
  uint64_t arenaBytes(int device) const;
  uint64_t stagingElements() const;
  uint64_t usedSharedBytes() const;
  Executable *find(std::string_view program);
  void report(const Executable &executable, const mtrun_results &results);
};

// A step without weight says nothing, and its mean may be 0/0: it adds 0 to the sums.
void Session::State::report(const Executable &executable, const mtrun_results &results) {
  size_t place = 0;
  for (size_t i = 0; i < executable.metricSums.size(); ++i) {
    const fb::Metric &metric = *executable.program->metrics()->Get(static_cast<uint32_t>(i));
    const float *value = executable.metricValue(i);
    size_t size = executable.metricSums[i];
    double weight = executable.metricWeight(i);
    bool mean = metric.formula() == fb::Formula::Mean || metric.formula() == fb::Formula::RootMean;
    sums.resize(size);
    for (size_t k = 0; k < size; ++k)
      sums[k] = weight == 0 ? 0 : mean ? value[k] * weight : value[k];
    if (results.sums)
      std::copy(sums.begin(), sums.end(), results.sums + place);
    if (results.weights)
      results.weights[i] = weight;
    if (results.values)
      results.values[i] = metric.formula() == fb::Formula::Mean ? *value : metricValue(metric, sums.data(), weight);
    place += size;
  }
}

Status Session::State::chooseDevices() {
  if (Status status = parseDeviceSpec(options.devices ? options.devices : "cpu:1", spec); !status.ok())
    return status;
  uint32_t devices = static_cast<uint32_t>(spec.devices);
  if (devices > plan->replicas())
    return {MT_INVALID, "expected at most " + std::to_string(plan->replicas()) + " devices for a plan of " +
                            std::to_string(plan->replicas()) + " replicas, found " + std::to_string(devices) +
                            "; recompile it with: mtc compile MODEL --replicas " +
                            std::to_string(std::bit_ceil(devices))};
  if (devices < plan->tables().min_devices())
    return {MT_NO_MEMORY, "expected at least " + std::to_string(plan->tables().min_devices()) +
                              " devices, the fewest on which the plan fits the memory it was compiled for, found " +
                              std::to_string(devices)};
  // Devices that share memory work as one team on all replicas: each weight is then read, and each gradient written,
  // by one thread and once, and shares are even for any number of devices. Only devices that own their variables split
  // the tree.
  bool together = options.private_variables == 0 && spec.kind != "cuda";
  layout.leaves = splitLeaves(static_cast<int>(plan->replicas()), together ? 1 : spec.devices);
  for (int leaves : layout.leaves)
    layout.variants.push_back(std::countr_zero(static_cast<unsigned>(leaves)));

  GroupOptions groupOptions;
  groupOptions.devices = together ? 1 : spec.devices;
  groupOptions.threads = together ? spec.devices * spec.threads : spec.threads;
  groupOptions.cards = spec.cards;
  groupOptions.pin = !options.no_pin;
  groupOptions.spin = !options.no_spin;
  groupOptions.log = [this](int level, const std::string &message) { log(level, message); };
  if (Status status = makeDeviceGroup(spec.kind, groupOptions, group); !status.ok())
    return status;
  if (Status status = group->loadCode(*plan, options.cpu); !status.ok())
    return status;

  layout.tree.sums = treeSums(layout.leaves);
  if (plan->tables().sum_kernel() < count(plan->tables().kernels())) {
    layout.tree.sum = group->kernel(plan->tables().sum_kernel());
    const fb::Kernel &sum = *plan->tables().kernels()->Get(plan->tables().sum_kernel());
    uint64_t perTile = group->blocks() ? sum.gpu()->elements_per_tile() : sum.elements_per_tile();
    layout.tree.elementsPerTile = std::max<int64_t>(1, static_cast<int64_t>(perTile));
    layout.tree.threads = group->blocks() ? sum.gpu()->threads() : 0;
  }
  return {};
}

uint64_t Session::State::arenaBytes(int device) const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count(plan->tables().programs()); ++i)
    bytes = std::max(bytes, plan->tables()
                                .programs()
                                ->Get(i)
                                ->variants()
                                ->Get(static_cast<uint32_t>(layout.variants[device]))
                                ->arena_bytes());
  return bytes;
}

// Floats of staging a device; none of a lone one.
uint64_t Session::State::stagingElements() const {
  uint64_t elements = 0;
  if (devices() == 1)
    return 0;
  for (uint32_t i = 0; i < count(plan->tables().programs()); ++i) {
    const auto *steps = plan->tables().programs()->Get(i)->steps();
    for (uint32_t s = 0; s < count(steps); ++s)
      if (steps->Get(s)->kernel() < 0)
        elements = std::max(elements,
                            LocalCollectives::stagingElements(steps->Get(s)->root_bytes() / sizeof(float), devices()));
  }
  return elements;
}

// Of the shared block, what is ever touched: a lone device keeps results of all-reduces where their roots are.
uint64_t Session::State::usedSharedBytes() const {
  if (devices() > 1)
    return sharedBytes;
  uint64_t used = 0;
  for (uint32_t i = 0; i < count(plan->tables().programs()); ++i) {
    const fb::Program &program = *plan->tables().programs()->Get(i);
    uint64_t bytes = program.shared_bytes();
    for (uint32_t s = 0; s < count(program.steps()); ++s)
      if (program.steps()->Get(s)->kernel() < 0)
        bytes -= std::min(bytes, program.steps()->Get(s)->root_bytes());
    used = std::max(used, bytes);
  }
  return used;
}

Status Session::State::allocateBlock(int device, uint64_t bytes, std::byte *&memory) {
  void *block = nullptr;
  Status status = group->allocate(device, bytes, &block);
  memory = static_cast<std::byte *>(block);
  return status;
}

Status Session::State::allocate() {
  uint64_t variablesBytes = plan->tables().variables_bytes();
  for (uint32_t i = 0; i < count(plan->tables().programs()); ++i)
    sharedBytes = std::max(sharedBytes, plan->tables().programs()->Get(i)->shared_bytes());
  uint64_t staging = stagingElements() * sizeof(float);
  uint64_t copies = static_cast<uint64_t>(devices());
  // No sum below wraps: at most 2^10 devices with blocks of at most 2^46 bytes.
  uint64_t constants = group->hostMemory() ? 0 : plan->constants().size();
  std::vector<uint64_t> needed;
  for (int d = 0; d < devices(); ++d) {
    int64_t maxRows = layout.leaves[d] * static_cast<int64_t>(plan->leafRows());
    needed.push_back(variablesBytes + usedSharedBytes() + staging + constants + arenaBytes(d) +
                     group->preparedBytes(*plan, maxRows));
    peakBytes += needed.back();
  }
  if (Status status = group->reserve(needed, onesBytes()); !status.ok())
    return std::move(status).in("variables, shared buffers and arenas of " + std::to_string(spec.devices) +
                                (spec.devices == 1 ? " device: " : " devices: "));

  for (auto *list : {&memory.variables, &memory.shared, &memory.arenas})
    list->resize(copies);
  memory.staging.resize(copies);
  memory.constants.resize(copies, reinterpret_cast<const std::byte *>(plan->constants().data()));
  for (int d = 0; d < devices(); ++d) {
    if (Status status = allocateBlock(d, variablesBytes, memory.variables[d]); !status.ok())
      return status;
    if (Status status = allocateBlock(d, sharedBytes, memory.shared[d]); !status.ok())
      return status;
    group->fill(d, memory.variables[d], 0, variablesBytes);
    if (devices() > 1)
      group->fill(d, memory.shared[d], 0, sharedBytes);
    if (Status status = allocateBlock(d, arenaBytes(d), memory.arenas[d]); !status.ok())
      return status;
    group->fill(d, memory.arenas[d], 0, arenaBytes(d));
    std::byte *block = nullptr;
    if (Status status = allocateBlock(d, staging, block); !status.ok())
      return status;
    memory.staging[d] = reinterpret_cast<float *>(block);
    if (group->hostMemory())
      continue;
    if (Status status = allocateBlock(d, constants, block); !status.ok())
      return status;
    memory.constants[d] = block;
    group->copyIn(d, block, plan->constants().data(), constants);
  }
  if (!group->hostMemory())
    mirror.resize(variablesBytes);
  return group->health();
}

// An upper bound of what makeOnes takes.
uint64_t Session::State::onesBytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count(plan->tables().programs()); ++i) {
    const auto *signature = plan->tables().programs()->Get(i)->signature();
    for (uint32_t e = 0; e < count(signature); ++e)
      if (signature->Get(e)->optional())
        bytes = std::max(bytes, signature->Get(e)->row_bytes() * plan->batch());
  }
  return bytes * std::size(ones);
}

// Fills room for one batch with ones of each type that an optional sample weight has.
void Session::State::makeOnes() {
  for (const Executable &executable : executables)
    for (uint32_t i = 0; i < count(executable.program->signature()); ++i) {
      const fb::SignatureEntry &entry = *executable.program->signature()->Get(i);
      auto &bytes = ones[static_cast<size_t>(entry.dtype())];
      size_t size = entry.row_bytes() * plan->batch();
      if (!entry.optional() || bytes.size() >= size)
        continue;
      bytes.resize(size);
      auto fill = [&](auto one) {
        for (size_t at = 0; at < size; at += sizeof(one))
          std::memcpy(bytes.data() + at, &one, sizeof(one));
      };
      switch (entry.dtype()) {
      case fb::DType::F32:
        fill(1.0f);
        break;
      case fb::DType::F64:
        fill(1.0);
        break;
      case fb::DType::I32:
        fill(int32_t{1});
        break;
      case fb::DType::I64:
        fill(int64_t{1});
        break;
      case fb::DType::Bool:
      case fb::DType::U8:
        fill(uint8_t{1});
        break;
      }
    }
}

Executable *Session::State::find(std::string_view program) {
  for (Executable &executable : executables)
    if (executable.program->name()->string_view() == program)
      return &executable;
  return nullptr;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Status Session::create(const Plan &plan, const mtrun_options *options, std::unique_ptr<Session> &session) {
  auto state = std::make_unique<State>();
  state->plan = &plan;
  if (options)
    state->options = *options;
  if (Status status = state->chooseDevices(); !status.ok())
    return status;
  if (Status status = state->allocate(); !status.ok())
    return status;
  for (uint32_t i = 0; i < count(plan.tables().programs()); ++i)
    state->executables.push_back(
        bindProgram(plan, *plan.tables().programs()->Get(i), *state->group, state->layout, state->memory));
  for (Executable &executable : state->executables) {
    if (Status status = state->group->prepare(executable.bound); !status.ok())
      return status;
    for (size_t size : executable.metricSums)
      state->sums.reserve(size);
  }
  state->makeOnes();
  state->options.devices = state->options.cpu = nullptr; // the caller's strings may go
  std::unique_ptr<Session> created(new Session(std::move(state)));
  if (Status status = created->init(0); !status.ok())
    return status;
  created->log(0, std::string("running on ") + created->state_->group->kind() + ":" +
                      std::to_string(created->state_->spec.devices) + "x" +
                      std::to_string(created->state_->spec.threads) + ", target " + created->state_->group->target());
  session = std::move(created);
  return {};
}

const Plan &Session::plan() const { return *state_->plan; }

const Status &Session::health() const { return state_->group->health(); }

Status Session::init(int64_t seed) {
  if (seed == 0)
    seed = state_->options.seed ? state_->options.seed : static_cast<int64_t>(state_->plan->tables().seed());
  state_->seed = seed;
  if (Executable *executable = state_->find("init"))
    state_->group->run(executable->bound,
                       {nullptr, static_cast<int64_t>(state_->plan->batch()), static_cast<uint64_t>(seed)});
  const auto *variables = state_->plan->tables().variables();
  for (uint32_t i = 0; i < count(variables); ++i)
    if (int64_t place = variables->Get(i)->initial(); place >= 0)
      setVariable(i, std::as_bytes(
                         state_->plan->initialValues().subspan(static_cast<size_t>(place), variables->Get(i)->size())));
  return health();
}

Status Session::run(std::string_view program, const void *const *tensors, int64_t n, mtrun_results *results) {
  Executable *executable = state_->find(program);
  if (!executable)
    return {MT_INVALID, "the plan has no program " + std::string(program)};
  if (n < 1 || static_cast<uint64_t>(n) > state_->plan->batch())
    return {MT_INVALID,
            "expected 1 to " + std::to_string(state_->plan->batch()) + " samples, found " + std::to_string(n)};
  const auto *signature = executable->program->signature();
  for (uint32_t i = 0; i < count(signature); ++i) {
    const void *tensor = tensors ? tensors[i] : nullptr;
    const fb::SignatureEntry &entry = *signature->Get(i);
    if (!tensor && entry.optional())
      tensor = state_->ones[static_cast<size_t>(entry.dtype())].data();
    if (!tensor)
      return {MT_INVALID, "expected a pointer for " + entry.name()->str() + ", found null"};
    executable->tensors[i] = tensor;
  }
  state_->group->run(executable->bound, {executable->tensors.data(), n, static_cast<uint64_t>(state_->seed)});
  if (!results || !health().ok())
    return health();
  state_->report(*executable, *results);
  return {};
}

std::span<const std::byte> Session::variable(uint32_t index) const {
  const fb::Variable &variable = *state_->plan->tables().variables()->Get(index);
  const std::byte *place = state_->memory.variables[0] + variable.offset();
  if (state_->group->hostMemory())
    return {place, variable.size()};
  std::byte *copy = state_->mirror.data() + variable.offset();
  state_->group->copyOut(0, copy, place, variable.size());
  return {copy, variable.size()};
}

void Session::setVariable(uint32_t index, std::span<const std::byte> bytes) {
  const fb::Variable &variable = *state_->plan->tables().variables()->Get(index);
  for (size_t d = 0; d < state_->memory.variables.size(); ++d)
    state_->group->copyIn(static_cast<int>(d), state_->memory.variables[d] + variable.offset(), bytes.data(),
                          variable.size());
}

Status Session::findVariable(std::string_view name, uint32_t &index) const {
  int found = state_->plan->variable(name);
  if (found >= 0) {
    index = static_cast<uint32_t>(found);
    return {};
  }
  std::string names;
  const auto *variables = state_->plan->tables().variables();
  for (uint32_t i = 0; i < count(variables); ++i)
    names += (i ? ", " : "") + variables->Get(i)->name()->str();
  return {MT_INVALID, "expected one of the plan's variables (" + names + "), found " + std::string(name)};
}

Status Session::startTrace(const TracerOptions &options) {
  Executable *executable = state_->find("train_step");
  if (!executable)
    return {MT_INVALID, "the plan has no program train_step to trace"};
  if (state_->group->blocks())
    return {MT_INVALID, "expected CPU devices for a trace, found " + std::string(state_->group->kind()) +
                            ": what happens inside a GPU's step is not taken down"};
  return startTracer(options, *state_->group, *executable, state_->tracer);
}

const Tracer *Session::tracer() const { return state_->tracer.get(); }

int Session::threadsOfDevice() const { return state_->spec.threads; }

int Session::groupDevices() const { return state_->devices(); }

mtrun_session_info Session::info() const {
  mtrun_session_info info = {};
  info.devices = state_->spec.devices;
  info.threads_per_device = state_->spec.threads;
  info.variables_bytes = static_cast<int64_t>(state_->plan->tables().variables_bytes());
  info.peak_bytes = static_cast<int64_t>(state_->peakBytes);
  info.collective_bytes = static_cast<int64_t>(state_->group->collectiveBytes());
  info.target = state_->group->target();
  info.seed = state_->seed;
  return info;
}

int32_t Session::leaves(int32_t device) const {
  if (device < 0 || device >= state_->spec.devices)
    return 0;
  return state_->devices() == 1 ? state_->layout.leaves[0] : state_->layout.leaves[static_cast<size_t>(device)];
}

void Session::log(int level, const std::string &message) const { state_->log(level, message); }

uint64_t Session::launches() const { return state_->group->launches(); }

void Session::fillTemporaries(uint8_t byte) {
  for (int d = 0; d < state_->devices(); ++d) {
    state_->group->fill(d, state_->memory.arenas[d], byte, state_->arenaBytes(d));
    state_->group->fill(d, state_->memory.shared[d], byte, state_->sharedBytes);
  }
}

void Session::corruptRoot(int collective, int device) { state_->group->corruptRoot(collective, device); }

} // namespace mtrun
