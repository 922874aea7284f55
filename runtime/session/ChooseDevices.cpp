// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/ChooseDevices.h"

#include "runtime/device/Collectives.h"
#include "runtime/device/SharedAddress.h"
#include "runtime/device/mpi/MpiTransport.h"
#include "runtime/plan/Check.h"
#include "runtime/session/DefaultDevices.h"
#include "runtime/support/hash_text.h"
#include "runtime/support/launcher.h"
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <exception>
#include <numeric>
#include <set>
#include <sstream>
#include <unistd.h>

namespace mtrun {

namespace fb = ::mt::plan;

// While an exception ends this process alone, it does not wait for the others, which notice its end.
SessionDevices::~SessionDevices() {
  if (transport && processGroup && std::uncaught_exceptions() == 0)
    endMpiAtExit(processGroup->leave());
}

// Checks the CPU device of this process: it has all of the process's threads.
static Status ownThreads(const mtrun_options &options, DeviceSpec &spec) {
  std::string threads = std::to_string(spec.devices * spec.threads);
  if (spec.devices > 1)
    return {MT_INVALID, "expected one device of each of " + std::to_string(options.processes) + " processes, as " +
                            spec.kind + ":1x" + threads + " for " + threads + " threads, found " + spec.kind + ":" +
                            std::to_string(spec.devices)};
  spec.devices = options.processes;
  int allowed = allowedCpus();
  if (spec.threads <= allowed || allowed >= sysconf(_SC_NPROCESSORS_ONLN))
    return {};
  return {MT_INVALID, "expected " + threads + " CPUs for the threads of process " + std::to_string(options.process) +
                          ", found " + std::to_string(allowed) +
                          " to which its launcher binds it; mpirun --bind-to none binds it to none, mpirun --map-by "
                          "slot:PE=" +
                          threads + " or srun --cpus-per-task " + threads + " to " + threads};
}

// Selects the device of this process: the entry of the device list at the local rank, or its CPU device.
static Status ownDevice(const mtrun_options &options, DeviceSpec &spec) {
  bool rendezvous = options.rendezvous || !spec.onGpus();
  if (options.process < 0 || options.process >= options.processes || !rendezvous)
    return {MT_INVALID, "expected a process below " + std::to_string(options.processes) +
                            " and a rendezvous address, found " + std::to_string(options.process) + " and " +
                            (options.rendezvous ? options.rendezvous : "NULL")};
  if (!spec.onGpus())
    return ownThreads(options, spec);
  std::set<int> gpus(spec.gpus.begin(), spec.gpus.end());
  if (gpus.size() < spec.gpus.size())
    return {MT_INVALID, "expected a GPU of its own for each process, found one twice; several devices on a GPU are one "
                        "process"};
  auto own = static_cast<size_t>(std::max(options.local_process, 0));
  if (own >= spec.gpus.size())
    return {MT_NO_DEVICE, "expected a GPU for process " + std::to_string(own) + " of this host, found " +
                              std::to_string(spec.gpus.size())};
  spec.gpus = {spec.gpus[own]};
  spec.devices = options.processes;
  return {};
}

using Log = std::function<void(int level, const std::string &message)>;

// Processes of CPU devices exchange messages through MPI, by which they also agree where they connect.
static Status chooseTransport(const mtrun_options &options, int threads, const Log &log,
                              ProcessGroupOptions &groupOptions, std::unique_ptr<Transport> &transport) {
  if (Status status = openMpi(options.process, options.processes, log, transport); !status.ok())
    return status;
  if (int cpus = allowedCpus(); log && threads > cpus)
    log(1, "process " + std::to_string(options.process) + " has " + std::to_string(threads) + " threads for " +
               std::to_string(cpus) + (cpus == 1 ? " CPU" : " CPUs"));
  if (groupOptions.rendezvous == "mpi:")
    groupOptions.rendezvous.clear();
  return shareAddress(*transport, groupOptions.timeout, groupOptions.rendezvous, groupOptions.secret);
}

// `agreement`: what must be equal in all processes, in addition to the options.
static Status chooseProcesses(const std::string &agreement, const mtrun_options &options, const Log &log,
                              SessionDevices &chosen) {
  if (options.processes <= 1)
    return {};
  ProcessGroupOptions groupOptions;
  groupOptions.process = options.process;
  groupOptions.processes = options.processes;
  groupOptions.rendezvous = options.rendezvous ? options.rendezvous : "";
  groupOptions.secret = options.secret ? options.secret : "";
  if (options.timeout > 0)
    groupOptions.timeout = options.timeout;
  bool onGpus = chosen.spec.onGpus();
  if (!onGpus)
    if (Status status = chooseTransport(options, chosen.spec.threads, log, groupOptions, chosen.transport);
        !status.ok())
      return status;
  groupOptions.name = chosen.spec.kind + (onGpus ? ":" + std::to_string(chosen.spec.gpus[0])
                                                 : ":1x" + std::to_string(chosen.spec.threads));
  char host[256] = "";
  if (!groupOptions.rendezvous.starts_with("unix:") && !groupOptions.rendezvous.starts_with("fd:") &&
      gethostname(host, sizeof host - 1) == 0)
    groupOptions.name += std::string(" of ") + host;
  groupOptions.agreement = agreement + "\nseed: " + std::to_string(options.seed) + "\nversion: " MT_VERSION +
                           (options.weights ? "\nweights: " + std::string(options.weights) : std::string()) +
                           "\noptimizer: " + (options.shard_optimizer ? "sharded" : "whole");
  chosen.layout.first = options.process;
  return ProcessGroup::open(groupOptions, chosen.processGroup);
}

// Parses "3,1": a weight for each process.
static Status parseWeights(const std::string &text, int processes, std::vector<int64_t> &weights) {
  const char *at = text.data(), *end = at + text.size();
  for (bool more = true; more;) {
    int32_t weight = 0;
    auto [stop, error] = std::from_chars(at, end, weight);
    more = stop != end && *stop == ',';
    if (error != std::errc() || weight < 1 || (stop != end && !more))
      return {MT_INVALID, "expected weights of processes as 3,1, whole numbers of at least 1, found " + text};
    weights.push_back(weight);
    at = stop + 1;
  }
  if (weights.size() != static_cast<size_t>(processes))
    return {MT_INVALID, "expected " + std::to_string(processes) + " weights, one for each process, found " +
                            std::to_string(weights.size()) + " in " + text};
  return {};
}

// Collects the threads of all processes, so that each knows them.
static Status gatherThreads(ProcessGroup &group, int threads, std::string &text) {
  std::vector<std::string> all;
  if (Status status = group.gather(std::to_string(threads), all); !status.ok())
    return status;
  text.clear();
  for (const std::string &each : all)
    text += (text.empty() ? "" : ",") + each;
  return group.broadcast(text);
}

// Finds how many processes each host has, from their numbers on the hosts: a host's first process has number 0. Empty:
// the processes of a host do not follow one another.
static Status gatherHosts(ProcessGroup &group, int localProcess, std::vector<int> &hosts) {
  std::vector<std::string> all;
  if (Status status = group.gather(std::to_string(localProcess), all); !status.ok())
    return status;
  std::string text;
  for (const std::string &each : all)
    text += each + " ";
  if (Status status = group.broadcast(text); !status.ok())
    return status;
  std::istringstream numbers(text);
  hosts.clear();
  for (int number; numbers >> number;) {
    if (number == 0)
      hosts.push_back(0);
    if (hosts.empty() || number != hosts.back()++) {
      hosts.clear();
      break;
    }
  }
  return {};
}

// Divides the shards among the processes of CPU devices by their weights, which are their threads by default.
static Status divideByWeight(int allShards, const mtrun_options &options, const Log &log, SessionDevices &chosen) {
  std::string text = options.weights ? options.weights : "";
  if (!options.weights)
    if (Status status = gatherThreads(*chosen.processGroup, chosen.spec.threads, text); !status.ok())
      return status;
  std::vector<int64_t> weights;
  if (Status status = parseWeights(text, options.processes, weights); !status.ok())
    return status;
  chosen.layout.shards = splitShards(allShards, weights);
  if (Status status = gatherHosts(*chosen.processGroup, options.local_process, chosen.hosts); !status.ok())
    return status;
  // A host can add its own sums first if it has a whole subtree. Weights may divide the shards across hosts.
  bool equal = std::all_of(weights.begin(), weights.end(), [&](int64_t weight) { return weight == weights[0]; });
  std::vector<int> onHosts = equal && chosen.hosts.size() > 1 && chosen.hosts.size() < weights.size()
                                 ? splitShardsOnHosts(allShards, chosen.hosts)
                                 : std::vector<int>();
  if (onHosts.empty())
    chosen.hosts.clear();
  else
    chosen.layout.shards = std::move(onHosts);
  int64_t all = std::accumulate(weights.begin(), weights.end(), int64_t(0));
  double most = 0;
  std::string shares;
  for (size_t i = 0; i < weights.size(); ++i) {
    int held = chosen.layout.shards[i];
    shares += (i ? " + " : "") + std::to_string(held);
    most = std::max(most, held * static_cast<double>(all) / (static_cast<double>(weights[i]) * allShards));
  }
  if (log && options.weights && most > 1.005) {
    char ratio[40];
    snprintf(ratio, sizeof ratio, "%.2f", most);
    log(1, "the weights " + text + " give " + shares + " shards, because each process holds one subtree of them: the " +
               "share of one is " + ratio + " times what its weight says");
  }
  return {};
}

static Status parseLibraries(const char *text, LibraryUse &use) {
  std::string_view name = text ? text : "auto";
  constexpr std::pair<std::string_view, LibraryUse> uses[] = {{"auto", LibraryUse::Auto},
                                                              {"off", LibraryUse::Off},
                                                              {"require", LibraryUse::Require},
                                                              {"tune", LibraryUse::Tune}};
  for (auto [known, value] : uses)
    if (name == known) {
      use = value;
      return {};
    }
  return {MT_INVALID, "expected auto, off, require or tune for libraries, found " + std::string(name)};
}

// Sets the number of shards that each device computes at once: the shards of a micro-batch. `threads`: of the only
// device, if nothing but the session decides how it divides the batch; else 0.
static Status cutBatch(const Plan &plan, const mtrun_options &options, int threads, const Log &log,
                       SessionDevices &chosen) {
  int64_t microBatches = options.micro_batches ? options.micro_batches : plan.tables().micro_batches();
  const int64_t shards = plan.shards();
  if (threads > 0 && options.micro_batches == 0 && microBatches == 1) {
    BatchDivision division = usefulDivision(plan, threads);
    microBatches = division.takes ? shards : 1;
    chosen.layout.takers = division.takes ? threads : 0;
    chosen.layout.partRows = division.partRows;
    if (log && division.takes)
      log(0, "divides a batch into " + std::to_string(shards) + " micro-batches, whose values stay in the caches");
  }
  if (microBatches < 1 || microBatches > shards || !std::has_single_bit(static_cast<uint64_t>(microBatches)))
    return {MT_INVALID, "expected a power of two up to " + std::to_string(shards) +
                            ", the shards of the plan, for micro-batches, found " + std::to_string(microBatches)};
  chosen.layout.passShards = static_cast<int>(shards / microBatches);
  for (int held : chosen.layout.shards)
    chosen.layout.variants.push_back(std::countr_zero(static_cast<unsigned>(std::min(held, chosen.layout.passShards))));
  if (chosen.layout.inMicroBatches() && chosen.spec.onGpus())
    return {MT_INVALID, "expected CPUs for micro-batches that run one after another, found devices of kind " +
                            chosen.spec.kind + "; " + std::to_string(microBatches) +
                            " GPUs can run one micro-batch each"};
  return {};
}

// Returns true if all devices have equal subtrees.
static bool areEven(const std::vector<int> &shards) {
  return std::all_of(shards.begin(), shards.end(), [&](int held) { return held == shards[0]; });
}

ExchangePlaces SessionDevices::places() const { return {devices(), areEven(layout.shards), hosts}; }

Status connectProcesses(const mtrun_options &options, const std::string &agreement, Log log, SessionDevices &chosen) {
  if (Status status = parseDeviceSpec(options.devices ? options.devices : "cpu:1", chosen.spec); !status.ok())
    return status;
  if (options.processes < 2 || chosen.spec.onGpus())
    return {MT_INVALID, "expected several processes of CPU devices, as mpirun -np 2 starts, found " +
                            std::to_string(std::max(options.processes, 1)) + " of kind " + chosen.spec.kind};
  if (Status status = ownDevice(options, chosen.spec); !status.ok())
    return status;
  if (Status status = chooseProcesses(agreement, options, log, chosen); !status.ok())
    return status;
  return divideByWeight(static_cast<int>(std::bit_ceil(static_cast<unsigned>(options.processes))), options, log,
                        chosen);
}

Status abandonProcesses(const mtrun_options &options, const Status &why) {
  constexpr double seconds = 5;
  std::unique_ptr<Transport> transport;
  std::string rendezvous, secret;
  Status status;
  if (options.processes <= 1 || hasOpenedMpi(status))
    return status;
  status = openMpi(options.process, options.processes, {}, transport);
  if (status.ok())
    (void)shareAddress(*transport, seconds, rendezvous, secret, why);
  return status;
}

Status chooseDevices(const Plan &plan, const mtrun_options &options, Log log, SessionDevices &chosen) {
  constexpr int64_t maxSteps = 1024;
  if (options.steps_per_launch < 0 || options.steps_per_launch > maxSteps)
    return {MT_INVALID, "expected 1 to " + std::to_string(maxSteps) + " steps per launch, found " +
                            std::to_string(options.steps_per_launch)};
  if (options.steps_per_launch > 1 && plan.tables().lengths())
    return {MT_INVALID,
            "expected 1 step per launch of a plan of several lengths, which each step chooses from, found " +
                std::to_string(options.steps_per_launch)};
  std::string devicesText = options.devices ? options.devices : defaultDevices(plan);
  if (Status status = parseDeviceSpec(devicesText, chosen.spec); !status.ok())
    return status;
  if (options.processes == 0)
    if (Status status = expectNoLauncher("a session", std::string("processes = 1 (C), --processes 1 (mtrun) or ") +
                                                          processesVariable + "=1 in the environment");
        !status.ok())
      return status;
  if (options.processes > 1)
    if (Status status = ownDevice(options, chosen.spec); !status.ok())
      return status;
  uint32_t devices = static_cast<uint32_t>(chosen.spec.devices);
  if (uint32_t most = plan.shards(); devices > most) {
    std::string shards = std::to_string(std::bit_ceil(devices));
    bool larger = std::bit_ceil(devices) > plan.batch(); // a shard needs one sample or more
    return {MT_INVALID, "expected at most " + std::to_string(most) + (most == 1 ? " device" : " devices") +
                            " for a plan of " + std::to_string(most) + (most == 1 ? " shard" : " shards") + ", found " +
                            std::to_string(devices) + "; recompile it with: mtc compile MODEL " +
                            (larger ? "--batch " + shards + " or more --shards " : "--shards ") + shards};
  }
  if (devices < plan.tables().min_devices())
    return {MT_NO_MEMORY, "expected at least " + std::to_string(plan.tables().min_devices()) +
                              " devices, the fewest on which the plan fits the memory it was compiled for, found " +
                              std::to_string(devices)};
  // Devices that share memory form one thread pool for all shards: one thread reads each weight and writes each
  // gradient, once, and the work is balanced for any number of devices. Only devices with private variables split the
  // reduction tree.
  bool sharesVariables = options.private_variables == 0 && !chosen.spec.onGpus() && options.processes <= 1;
  chosen.layout.shards = splitShards(static_cast<int>(plan.shards()), sharesVariables ? 1 : chosen.spec.devices);
  if (options.weights && (options.processes <= 1 || chosen.spec.onGpus()))
    return {MT_INVALID, "expected several processes of CPU devices for the weights " + std::string(options.weights) +
                            ", found " + std::to_string(std::max(options.processes, 1)) + " of kind " +
                            chosen.spec.kind};
  if (Status status = chooseProcesses("plan: " + hashText(plan.hash()), options, log, chosen); !status.ok())
    return status;
  if (chosen.transport)
    if (Status status = divideByWeight(static_cast<int>(plan.shards()), options, log, chosen); !status.ok())
      return status;
  bool isOne = sharesVariables && chosen.layout.shards.size() == 1;
  if (Status status = cutBatch(plan, options, isOne ? chosen.spec.devices * chosen.spec.threads : 0, log, chosen);
      !status.ok())
    return status;

  GroupOptions groupOptions;
  groupOptions.processGroup = chosen.processGroup.get();
  groupOptions.transport = chosen.transport.get();
  groupOptions.places = chosen.places();
  groupOptions.dividesOptimizer = options.shard_optimizer != 0;
  groupOptions.devices = sharesVariables || chosen.transport ? 1 : chosen.spec.devices;
  groupOptions.threads = sharesVariables ? chosen.spec.devices * chosen.spec.threads : chosen.spec.threads;
  groupOptions.gpus = chosen.spec.gpus;
  if (Status status = parseLibraries(options.libraries, groupOptions.libraries); !status.ok())
    return status;
  if (options.tuning && !chosen.spec.onGpus())
    return {MT_INVALID, std::string(options.tuning) + ": expected GPUs for a tuning file, found devices of kind " +
                            chosen.spec.kind};
  groupOptions.tuning = options.tuning ? options.tuning : "";
  groupOptions.pin = !options.no_pin;
  groupOptions.spin = !options.no_spin;
  groupOptions.stepsPerLaunch = static_cast<int>(std::max<int64_t>(options.steps_per_launch, 1));
  auto warn = [log](const std::string &line) {
    if (log)
      log(1, line);
  };
  groupOptions.log = std::move(log);
  if (Status status = makeDeviceGroup(chosen.spec.kind, groupOptions, chosen.group); !status.ok())
    return status;
  if (Status status = chosen.group->loadCode(plan, options.cpu); !status.ok())
    return status;

  chosen.conditions = chosen.group->conditions() + "\nversion: " MT_VERSION;
  if (chosen.processGroup)
    if (Status status = chosen.processGroup->agree(
            chosen.conditions,
            chosen.spec.onGpus() ? "; give all processes GPUs of one model, one driver and the same libraries (or "
                                   "--libraries off); --force goes on, to other bits"
                                 : "; --force goes on, to other bits",
            options.force != 0, warn);
        !status.ok())
      return status;

  if (options.shard_optimizer && chosen.devices() > 1 && chosen.spec.onGpus())
    return {MT_INVALID, "expected CPU devices to divide the optimizer's variables, found devices of kind " +
                            chosen.spec.kind + "; train without --shard-optimizer"};
  if (options.shard_optimizer)
    if (Status status = divideOptimizer(plan.tables(), chosen.devices(), chosen.layout.optimizer); !status.ok())
      return status;
  chosen.layout.tree.sums = treeSums(chosen.layout.shards);
  if (plan.tables().sum_kernel() < count(plan.tables().kernels())) {
    chosen.layout.tree.sum = chosen.group->kernel(plan.tables().sum_kernel());
    const fb::Kernel &sum = *plan.tables().kernels()->Get(plan.tables().sum_kernel());
    uint64_t perTile = chosen.group->blocks() ? sum.gpu()->elements_per_tile() : sum.elements_per_tile();
    chosen.layout.tree.elementsPerTile = std::max<int64_t>(1, static_cast<int64_t>(perTile));
    chosen.layout.tree.threads = chosen.group->blocks() ? sum.gpu()->threads() : 0;
  }
  return {};
}

} // namespace mtrun
