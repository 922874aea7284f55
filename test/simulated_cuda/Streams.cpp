// SPDX-License-Identifier: Apache-2.0
//
// Streams, events, launches and graphs: the driver's functions of these.
#include "Simulator.h"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>

using namespace simulated;

#define MTC_SIM_DECLARE(member, symbol, parameters) extern "C" MT_API Result symbol parameters;
MTRUN_CUDA_FUNCTIONS(MTC_SIM_DECLARE)

namespace {

constexpr Result notSupported = 801;

CUstream_st &current(Stream stream, const char *call) {
  Simulator &s = simulator();
  CUstream_st &found = s.streams.get(stream);
  if (found.device != s.device(call))
    fatal(std::string(call) + " on a stream of another device than the current one");
  return found;
}

// Whether everything that was captured is waited for by the origin's last operations.
bool joined(const CUstream_st &origin) {
  const std::vector<Operation> &operations = origin.capture->operations;
  std::set<size_t> reached = origin.tail;
  for (size_t i = operations.size(); i-- > 0;)
    if (reached.count(i))
      reached.insert(operations[i].after.begin(), operations[i].after.end());
  return reached.size() == operations.size();
}

} // namespace

Result cuModuleGetFunction(Function *function, Module module, const char *name) {
  Simulator &s = simulator();
  CUmod_st &loaded = s.modules.get(module);
  if (s.fails("cuModuleGetFunction"))
    return refused();
  auto code = reinterpret_cast<mt_sim_kernel_fn>(dlsym(loaded.library, name));
  if (!code)
    return 500;
  CUfunc_st *&known = loaded.functions[name];
  if (!known) {
    known = s.functions.make();
    *known = {name, &loaded, code};
  }
  *function = known;
  return success;
}

Result cuFuncSetAttribute(Function function, int attribute, int value) {
  Simulator &s = simulator();
  CUfunc_st &called = s.functions.get(function);
  if (attribute != maxDynamicSharedBytes || value <= 0)
    fatal("cuFuncSetAttribute of " + called.name + ": attribute " + std::to_string(attribute) + ", " +
          std::to_string(value));
  if (s.fails("cuFuncSetAttribute"))
    return refused();
  called.dynamicBytes = static_cast<unsigned>(value);
  return success;
}

Result cuStreamCreateWithPriority(Stream *stream, unsigned flags, int priority) {
  Simulator &s = simulator();
  int device = s.device("cuStreamCreate");
  if (s.fails("cuStreamCreate"))
    return refused();
  if (flags != streamNonBlocking)
    fatal("cuStreamCreate of a stream that waits for the default one");
  if (priority > 0 || priority < greatestPriority)
    fatal("cuStreamCreateWithPriority of priority " + std::to_string(priority));
  *stream = s.streams.make();
  (*stream)->device = device;
  (*stream)->priority = priority;
  return success;
}

Result cuStreamCreate(Stream *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

Result cuStreamDestroy_v2(Stream stream) {
  Simulator &s = simulator();
  bool fails = s.fails("cuStreamDestroy", true);
  if (s.streams.get(stream).capture)
    fatal("cuStreamDestroy of a stream that is captured");
  s.runQueue();
  s.streams.free(stream);
  return fails ? refused() : success;
}

Result cuStreamSynchronize(Stream stream) {
  Simulator &s = simulator();
  if (s.streams.get(stream).capture)
    fatal("cuStreamSynchronize of a stream that is captured");
  if (s.fails("cuStreamSynchronize"))
    return refused();
  return s.runQueue() ? success : refused();
}

Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  Simulator &s = simulator();
  CUstream_st &waits = current(stream, "cuStreamWaitEvent");
  const CUevent_st &recorded = s.events.get(event);
  if (s.fails("cuStreamWaitEvent"))
    return refused();
  if (recorded.capture && !waits.capture) { // joins the capture
    waits.capture = recorded.capture;
    waits.tail.clear();
  }
  if (waits.capture != recorded.capture)
    fatal("cuStreamWaitEvent in a capture for an event outside of it");
  waits.tail.insert(recorded.tail.begin(), recorded.tail.end());
  return success;
}

Result cuEventCreate(Event *event, unsigned flags) {
  Simulator &s = simulator();
  int device = s.device("cuEventCreate");
  if (s.fails("cuEventCreate"))
    return refused();
  *event = s.events.make();
  (*event)->device = device;
  (*event)->timed = !(flags & eventDisableTiming);
  return success;
}

Result cuEventDestroy_v2(Event event) {
  Simulator &s = simulator();
  bool fails = s.fails("cuEventDestroy", true);
  s.runQueue();
  s.events.free(event);
  return fails ? refused() : success;
}

Result cuEventRecord(Event event, Stream stream) {
  Simulator &s = simulator();
  CUstream_st &recorded = current(stream, "cuEventRecord");
  CUevent_st &mark = s.events.get(event);
  if (mark.device != recorded.device)
    fatal("cuEventRecord on a stream of another device");
  if (mark.timed)
    fatal("cuEventRecord of an event with a time: what it is for says cuEventRecordWithFlags");
  if (s.fails("cuEventRecord"))
    return refused();
  mark.tail = recorded.tail;
  mark.capture = recorded.capture;
  return success;
}

// In a capture: a node that takes the time, which no stream of the capture waits for.
Result cuEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  Simulator &s = simulator();
  CUstream_st &recorded = current(stream, "cuEventRecordWithFlags");
  CUevent_st &mark = s.events.get(event);
  if (mark.device != recorded.device)
    fatal("cuEventRecordWithFlags on a stream of another device");
  if (!mark.timed || flags != (recorded.capture ? eventRecordExternal : 0))
    fatal("cuEventRecordWithFlags of an event without a time, or one in a capture that is not external");
  if (s.fails("cuEventRecordWithFlags"))
    return refused();
  Operation operation;
  operation.kind = Operation::Kind::Stamp;
  operation.event = &mark;
  s.enqueue(recorded, std::move(operation));
  return success;
}

Result cuEventElapsedTime(float *milliseconds, Event from, Event to) {
  Simulator &s = simulator();
  const CUevent_st &first = s.events.get(from), &last = s.events.get(to);
  if (first.device != last.device || first.time < 0 || last.time < 0)
    fatal("cuEventElapsedTime of events of two devices, or of one that has no time");
  for (const Operation &operation : s.queue)
    if (operation.event == &first || operation.event == &last)
      fatal("cuEventElapsedTime of an event that nobody has waited for");
  if (s.fails("cuEventElapsedTime"))
    return refused();
  *milliseconds = static_cast<float>(static_cast<double>(last.time - first.time) * 1e-6);
  return success;
}

// An event that the host may ask after.
static const CUevent_st &askedFor(Event event, const char *call) {
  const CUevent_st &mark = simulator().events.get(event);
  if (mark.capture)
    fatal(std::string(call) + " of an event that was recorded in a capture");
  return mark;
}

Result cuEventSynchronize(Event event) {
  Simulator &s = simulator();
  const CUevent_st &mark = askedFor(event, "cuEventSynchronize");
  if (s.fails("cuEventSynchronize"))
    return refused();
  return s.runQueue(&mark.tail) ? success : refused();
}

Result cuEventQuery(Event event) {
  Simulator &s = simulator();
  const CUevent_st &mark = askedFor(event, "cuEventQuery");
  if (s.fails("cuEventQuery"))
    return refused();
  bool all = s.advanceQueue(&mark.tail);
  return s.lost ? refused() : all ? success : notReady;
}

Result cuMemcpyAsync(Address to, Address from, size_t bytes, Stream stream) {
  Simulator &s = simulator();
  CUstream_st &copies = current(stream, "cuMemcpyAsync");
  Operation operation;
  operation.to = reinterpret_cast<std::byte *>(to);
  operation.from = reinterpret_cast<const std::byte *>(from);
  operation.bytes = bytes;
  const Memory *target = s.find(operation.to, bytes, "cuMemcpyAsync");
  const Memory *source = s.find(operation.from, bytes, "cuMemcpyAsync");
  bool pinned = target && source;
  if (pinned && target->device >= 0 && source->device >= 0 && target->device != source->device) {
    if (copies.priority != greatestPriority)
      fatal("cuMemcpyAsync between devices on a stream that waits behind kernels");
    if (s.tellsCopies)
      std::fprintf(stderr, "copy to %d from %d\n", target->device, source->device);
    if (!s.peers && copies.capture)
      return notSupported;
  }
  if (!pinned && copies.capture)
    fatal("cuMemcpyAsync in a capture of memory that is not pinned");
  if (s.fails("cuMemcpyAsync"))
    return refused();
  s.enqueue(copies, std::move(operation));
  // Memory that is not pinned is the caller's again on return (CUDA Driver API, "API synchronization behavior").
  return pinned || s.runQueue() ? success : refused();
}

Result cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, Stream stream) {
  Simulator &s = simulator();
  CUstream_st &sets = current(stream, "cuMemsetD8Async");
  Operation operation;
  operation.kind = Operation::Kind::Set;
  operation.to = reinterpret_cast<std::byte *>(to);
  operation.bytes = bytes;
  operation.byte = byte;
  const Memory *memory = s.find(operation.to, bytes, "cuMemsetD8Async");
  if (!memory || memory->device != sets.device)
    fatal("cuMemsetD8Async of memory of another device");
  if (s.fails("cuMemsetD8Async"))
    return refused();
  s.enqueue(sets, std::move(operation));
  return success;
}

Result cuLaunchKernel(Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                      unsigned blockY, unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters,
                      void **extra) {
  Simulator &s = simulator();
  CUstream_st &launches = current(stream, "cuLaunchKernel");
  CUfunc_st &called = s.functions.get(function);
  if (called.module->device != launches.device)
    fatal("cuLaunchKernel of " + called.name + ", which was loaded on another device");
  if (gridX == 0 || gridY == 0 || gridY > 65535 || gridZ != 1 || blockX == 0 || blockX > 1024 || blockY != 1 ||
      blockZ != 1 || sharedBytes != called.dynamicBytes || extra)
    fatal("cuLaunchKernel of " + called.name + " with a grid of " + std::to_string(gridX) + " x " +
          std::to_string(gridY) + " x " + std::to_string(gridZ) + " blocks of " + std::to_string(blockX) +
          " threads and " + std::to_string(sharedBytes) + " bytes");
  Operation operation;
  operation.kind = Operation::Kind::Kernel;
  operation.function = &called;
  operation.gridX = gridX;
  operation.gridY = gridY;
  operation.threads = blockX;
  operation.params = *static_cast<const mt_kernel_params **>(parameters[0]);
  operation.segments = *static_cast<const mt_gpu_word **>(parameters[1]);
  const Memory *params = s.find(operation.params, sizeof(mt_kernel_params), "cuLaunchKernel");
  const Memory *segments = s.find(operation.segments, gridY * sizeof(mt_gpu_word), "cuLaunchKernel");
  if (!params || params->device != launches.device || !segments || segments->device != launches.device)
    fatal("cuLaunchKernel of " + called.name + " with arguments in memory of another device");
  if (s.fails("cuLaunchKernel"))
    return refused();
  s.enqueue(launches, std::move(operation));
  return success;
}

Result cuStreamBeginCapture_v2(Stream stream, int mode) {
  Simulator &s = simulator();
  CUstream_st &captured = current(stream, "cuStreamBeginCapture");
  if (captured.capture || mode != captureThreadLocal)
    fatal("cuStreamBeginCapture of a stream that is captured, or in another mode than its thread's");
  if (s.fails("cuStreamBeginCapture"))
    return refused();
  s.runQueue();
  captured.capture = std::make_shared<CUgraph_st>();
  captured.origin = true;
  captured.tail.clear();
  return success;
}

Result cuStreamEndCapture(Stream stream, Graph *graph) {
  Simulator &s = simulator();
  CUstream_st &origin = s.streams.get(stream);
  if (!origin.capture || !origin.origin)
    fatal("cuStreamEndCapture of a stream where no capture began");
  bool whole = joined(origin), fails = s.fails("cuStreamEndCapture");
  std::shared_ptr<CUgraph_st> capture = origin.capture;
  for (const auto &[handle, other] : s.streams.all())
    if (other->capture == capture) {
      other->capture = nullptr;
      other->origin = false;
      other->tail.clear();
    }
  for (const auto &[handle, event] : s.events.all())
    if (event->capture == capture) {
      event->capture = nullptr;
      event->tail.clear();
    }
  *graph = nullptr;
  if (fails)
    return refused();
  if (!whole)
    return 904; // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
  *graph = s.graphs.make();
  (*graph)->operations = std::move(capture->operations);
  return success;
}

Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph, unsigned long long) {
  Simulator &s = simulator();
  CUgraph_st &from = s.graphs.get(graph);
  if (s.fails("cuGraphInstantiate"))
    return refused();
  *exec = s.execs.make();
  (*exec)->operations = from.operations;
  return success;
}

Result cuGraphLaunch(GraphExec exec, Stream stream) {
  Simulator &s = simulator();
  CUstream_st &launches = current(stream, "cuGraphLaunch");
  CUgraphExec_st &ready = s.execs.get(exec);
  if (launches.capture)
    fatal("cuGraphLaunch on a stream that is captured");
  if (s.fails("cuGraphLaunch"))
    return refused();
  size_t base = s.queue.size();
  std::set<size_t> before = launches.tail;
  bool loses = ++s.graphLaunches == s.loseAt;
  for (Operation operation : ready.operations) {
    std::set<size_t> after = operation.after.empty() ? before : std::set<size_t>();
    for (size_t index : operation.after)
      after.insert(base + index);
    operation.after = std::move(after);
    operation.lost = loses;
    launches.tail.insert(s.queue.size());
    s.queue.push_back(std::move(operation));
  }
  return success;
}

Result cuGraphExecDestroy(GraphExec exec) {
  Simulator &s = simulator();
  bool fails = s.fails("cuGraphExecDestroy", true);
  s.runQueue();
  s.execs.free(exec);
  return fails ? refused() : success;
}

Result cuGraphDestroy(Graph graph) {
  Simulator &s = simulator();
  bool fails = s.fails("cuGraphDestroy", true);
  s.graphs.free(graph);
  return fails ? refused() : success;
}
