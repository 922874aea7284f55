// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Libraries.h"

#include "runtime/abi/gpu_kernel.h"
#include "runtime/device/cuda/Blas.h"
#include "runtime/device/cuda/Dnn.h"
#include "runtime/plan/Check.h"
#include "runtime/support/hash_text.h"

#include <algorithm>
#include <cstring>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

constexpr uint64_t alignment = 256;
constexpr uint64_t clearTile = 1024, sumTile = MT_GPU_CALL_THREADS, transposeSide = 32;
// The tables of a call's helper kernels on the device: two segments that clear, one that sums, one that transposes,
// and their sizes. A segment is its count, an operand, a result and the place of its sizes.
constexpr size_t segmentCount = 4, clearLeft = 0, clearRight = 1, summed = 2, transposed = 3;
struct Tables {
  mt_gpu_word segments[segmentCount][4];
  int64_t sizes[segmentCount][2];
};

// Thresholds below which the helper launches of a call likely take longer than the call saves. Both are estimates: 2^28
// FLOP take 4 us on an H100 at 67 TFLOP/s of float32, as long as two or three launches; a tile of tensor cores has at
// least 16 rows. `mtrun tune` measures instead.
constexpr double minFlops = 0x1p28;
constexpr int64_t minLines = 16;

uint64_t alignedBuffer(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

int64_t ceilDiv(uint64_t a, uint64_t b) { return static_cast<int64_t>((a + b - 1) / b); }

// Returns the number of elements of a convolution's kernel.
uint64_t kernelElements(const Choice &choice) {
  return isTree(*choice.call) ? choice.sizes.result : choice.sizes.right;
}

int64_t transposeTiles(uint64_t rows, uint64_t columns) {
  return ceilDiv(rows, transposeSide) * ceilDiv(columns, transposeSide);
}

void log(const GroupOptions &options, int level, const std::string &message) {
  if (options.log)
    options.log(level, message);
}

} // namespace

Libraries::~Libraries() {
  close(false);
  close(true);
}

void Libraries::close(bool images) {
  for (OnGpu &on : gpus_) {
    std::unique_ptr<CallLibrary> &library = images ? on.dnn : on.blas;
    if (library)
      (void)driver_.ctxSetCurrent(on.gpu->context);
    library.reset();
  }
}

// Opens one library on every GPU.
Status Libraries::openOn(const std::vector<Gpu> &gpus, bool images, int driverVersion) {
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (Result result = driver_.ctxSetCurrent(gpus[i].context); result != success)
      return failure(driver_, result, gpus[i].title() + ": cannot use it");
    Status status = images ? openDnn(gpus_[i].dnn) : openBlas(driverVersion, gpus_[i].blas);
    if (!status.ok())
      return std::move(status).in(gpus[i].title() + ": ");
  }
  return {};
}

Status Libraries::findHelpers() {
  const char *names[] = {MT_GPU_CLEAR_ROWS, MT_GPU_SUM_SHARDS, MT_GPU_TRANSPOSE};
  for (OnGpu &on : gpus_)
    for (size_t i = 0; i < helpers; ++i)
      if (Result result = driver_.moduleGetFunction(&on.functions[i], on.gpu->module, names[i]); result != success)
        return failure(driver_, result, on.gpu->title() + ": expected a function " + names[i] + " in its code",
                       result == functionNotFound ? MT_CORRUPT : MT_DEVICE);
  return {};
}

Status Libraries::choose(const Plan &plan, const std::vector<Gpu> &gpus, const GroupOptions &options) {
  const fb::Plan &tables = plan.tables();
  if (options.libraries == LibraryUse::Off || tables.call_workspace() == 0) {
    if (options.tuning.empty())
      return {};
    return {MT_INVALID, options.tuning + ": expected kernels that may be library calls for a tuning file, found " +
                            (tables.call_workspace() ? "libraries that are off" : "none in the plan")};
  }
  tables_ = &tables;
  tunes_ = options.libraries == LibraryUse::Tune;
  bool required = options.libraries == LibraryUse::Require;
  Tuning tuned;
  if (!options.tuning.empty())
    if (Status status = readTuning(options.tuning, tuned); !status.ok())
      return status;
  shardRows_ = static_cast<int64_t>(plan.shardRows());
  shards_ = static_cast<int64_t>(plan.shards());
  most_ = tables.call_workspace();
  std::array<bool, 2> wanted = {}; // products, convolutions
  for (const fb::Kernel *kernel : Each(tables.kernels()))
    if (kernel->gpu() && kernel->gpu()->call())
      wanted[isConvolution(*kernel->gpu()->call())] |= required || tunes_ || isLikely(*kernel);
  if (!options.tuning.empty()) // exactly the libraries of the tuning file
    for (bool images : {false, true})
      wanted[images] =
          std::any_of(tuned.place.libraries.begin(), tuned.place.libraries.end(),
                      [&](const std::string &name) { return name.starts_with(images ? "cuDNN" : "cuBLASLt"); });
  int driverVersion = 0;
  if (Result result = driver_.driverGetVersion(&driverVersion); result != success)
    return failure(driver_, result, "cannot ask for the driver's version");
  for (const Gpu &gpu : gpus)
    gpus_.push_back({&gpu, nullptr, nullptr, {}});
  for (bool images : {false, true}) {
    // The simulated GPU has only libraries that the environment names.
    bool made = gpus[0].major == 0 && !std::getenv(images ? "MTRUN_CUDA_CUDNN" : "MTRUN_CUDA_CUBLASLT");
    if (!wanted[images] || (made && !required))
      continue;
    Status status = openOn(gpus, images, driverVersion);
    if (!status.ok() && (required || !options.tuning.empty()))
      return status;
    if (!status.ok()) {
      close(images);
      log(options, 1,
          (images ? "convolutions run generated kernels: " : "products run generated kernels: ") + status.message());
    }
  }
  setPlace(plan, driverVersion);
  if (options.tuning.empty())
    return chooseAll(tables, options);
  for (const Gpu &gpu : gpus)
    if (gpu.name != gpus[0].name)
      return {MT_INVALID,
              options.tuning + ": expected GPUs of one model, found " + gpus[0].title() + " and " + gpu.title()};
  if (Status status = checkTuning(options.tuning, tuned.place, place_); !status.ok())
    return status;
  return readChoices(options.tuning, tuned);
}

Status Libraries::chooseAll(const fb::Plan &tables, const GroupOptions &options) {
  std::string versions;
  for (const std::unique_ptr<CallLibrary> *library : {&gpus_[0].blas, &gpus_[0].dnn})
    if (*library)
      versions += (versions.empty() ? "" : " and ") + (*library)->version();
  if (versions.empty())
    return {};
  size_t calls = 0;
  for (uint32_t k = 0; k < count(tables.kernels()); ++k) {
    const fb::Kernel &kernel = *tables.kernels()->Get(k);
    if (!kernel.gpu() || !kernel.gpu()->call())
      continue;
    Choice choice;
    bool required = tunes_ || options.libraries == LibraryUse::Require;
    if (Status chosen = choose(kernel, required, choice); !chosen.ok())
      return std::move(chosen).in("kernel " + kernel.name()->str() + ": ");
    calls += choice.call != nullptr;
    choices_[k] = choice;
  }
  log(options, 0,
      std::to_string(calls) + " of " + std::to_string(choices_.size()) +
          " kernels that have a library call run as calls of " + versions);
  return calls ? findHelpers() : Status();
}

// Returns true if the library is likely faster: the work of a batch outweighs the helper launches.
bool Libraries::isLikely(const fb::Kernel &kernel) const {
  const fb::LibraryCall &call = *kernel.gpu()->call();
  int64_t lines = isConvolution(call) ? minLines : static_cast<int64_t>(call.lines()) * shardRows_;
  double flops = static_cast<double>(kernel.flops_per_row()) * static_cast<double>(shardRows_ * shards_);
  return flops >= minFlops && lines >= minLines;
}

// Chooses by the workspace that all shards together need, so the choice is the same for any number of devices.
Status Libraries::choose(const fb::Kernel &kernel, bool required, Choice &choice) {
  const fb::LibraryCall &call = *kernel.gpu()->call();
  CallLibrary *library = libraryOf(gpus_[0], call);
  if (!library || (!required && !isLikely(kernel)))
    return {};
  choice.call = &call;
  if (Status status = callSizes(call, "library call", choice.sizes); !status.ok())
    return status;
  uint64_t taken = cut(choice, shards_).library;
  std::vector<Algorithm> found;
  if (taken <= most_) {
    if (Result result = driver_.ctxSetCurrent(gpus_[0].gpu->context); result != success)
      return failure(driver_, result, gpus_[0].gpu->title() + ": cannot use it");
    Wanted wanted = {most_ - taken, 1, shards_, required};
    if (Status status = library->algorithms(call, shardRows_, wanted, found); !status.ok())
      return status;
  }
  if (found.empty())
    choice = {};
  else
    choice.algorithm = found.front();
  return {};
}

std::string Libraries::conditions() const {
  std::string libraries, chosen;
  for (const auto &[kernel, choice] : choices_)
    if (choice.call)
      chosen += std::to_string(kernel) + " " + choice.algorithm.name + "\n";
  if (chosen.empty())
    return "none";
  for (const std::string &library : place_.libraries)
    libraries += library + ", ";
  return libraries + "choices " + hashText(hash128({reinterpret_cast<const uint8_t *>(chosen.data()), chosen.size()}));
}

Libraries::Cut Libraries::cut(const Choice &choice, int64_t shards) const {
  Cut cut;
  uint64_t kernel = alignedBuffer(kernelElements(choice) * sizeof(float));
  cut.partials = isConvolution(*choice.call) ? kernel : 0;
  cut.library = cut.partials;
  if (isTree(*choice.call)) // no overflow: at most 2^16 shards of 2^42 bytes
    cut.library += alignedBuffer(choice.sizes.result * sizeof(float) * static_cast<uint64_t>(shards));
  cut.end = cut.library + alignedBuffer(choice.algorithm.workspace);
  return cut;
}

const Choice &Libraries::choiceOf(const BoundStep &step) const {
  static const Choice own;
  auto found = choices_.find(kernelOf(step));
  return found == choices_.end() ? own : found->second;
}

Libraries::OnGpu &Libraries::on(const Gpu &gpu) {
  return *std::find_if(gpus_.begin(), gpus_.end(), [&](const OnGpu &on) { return on.gpu == &gpu; });
}

uint64_t Libraries::workspaceBytes(int64_t maxRows) const {
  uint64_t bytes = 0;
  for (const auto &[kernel, choice] : choices_)
    if (choice.call)
      bytes = tunes_ ? most_ : std::max(bytes, cut(choice, maxRows / shardRows_).end);
  return bytes;
}

uint64_t Libraries::tableBytes(const fb::Program &program) const {
  uint64_t calls = 0;
  for (const fb::Step *step : Each(program.steps()))
    if (auto found = choices_.find(static_cast<uint32_t>(step->kernel())); found != choices_.end())
      calls += found->second.call != nullptr;
  return alignedBuffer(calls * sizeof(Tables));
}

Status Libraries::layOut(int device, const DeviceProgram &program, const Memory &memory,
                         std::vector<std::byte *> &placesOfTables) {
  placesOfTables.assign(program.steps.size(), nullptr);
  std::vector<const BoundStep *> steps;
  for (const BoundStep &step : program.steps)
    if (step.kernel && has(step))
      steps.push_back(&step);
  if (steps.empty())
    return {};
  std::byte *&workspace = workspaces_[device];
  if (!workspace) {
    if (Status status = memory.allocate(workspaceBytes(program.maxRows), &workspace); !status.ok())
      return status;
  }
  std::byte *place = nullptr;
  if (Status status = memory.allocate(steps.size() * sizeof(Tables), &place); !status.ok())
    return status;
  std::vector<Tables> tables(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Choice &choice = choiceOf(*steps[i]);
    const fb::LibraryCall &call = *choice.call;
    void *const *buffers = steps[i]->segments[0].buffers;
    Cut parts = cut(choice, program.maxRows / shardRows_);
    std::byte *at = place + i * sizeof(Tables);
    Tables &table = tables[i];
    auto set = [&](size_t segment, void *operand, void *result, int64_t count, uint64_t first, uint64_t second) {
      mt_gpu_word *words = table.segments[segment];
      words[0].count = count;
      words[1].buffer = operand;
      words[2].buffer = result;
      words[3].buffer = at + offsetof(Tables, sizes) + segment * sizeof(table.sizes[0]);
      table.sizes[segment][0] = static_cast<int64_t>(first);
      table.sizes[segment][1] = static_cast<int64_t>(second);
    };
    uint64_t kernel = kernelElements(choice), filters = call.filters();
    if (isTree(call)) {
      set(clearLeft, buffers[call.left()], nullptr, static_cast<int64_t>(choice.sizes.left) * program.maxRows,
          choice.sizes.left, 0);
      set(clearRight, buffers[call.right()], nullptr, static_cast<int64_t>(choice.sizes.right) * program.maxRows,
          choice.sizes.right, 0);
      set(summed, workspace + parts.partials,
          isConvolution(call) ? static_cast<void *>(workspace) : buffers[call.result()],
          static_cast<int64_t>(choice.sizes.result), 0, 0);
    }
    if (isConvolution(call)) {
      uint64_t rest = kernel / filters, rows = isTree(call) ? filters : rest, columns = isTree(call) ? rest : filters;
      set(transposed, isTree(call) ? static_cast<void *>(workspace) : buffers[call.right()],
          isTree(call) ? buffers[call.result()] : static_cast<void *>(workspace), transposeTiles(rows, columns), rows,
          columns);
    }
    placesOfTables[static_cast<size_t>(steps[i] - program.steps.data())] = at;
  }
  memory.copy(place, tables.data(), tables.size() * sizeof(Tables));
  return {};
}

Status Libraries::launch(OnGpu &on, Helper helper, int64_t tiles, unsigned count, const std::byte *params,
                         const std::byte *table, Stream stream) const {
  if (tiles > INT32_MAX)
    return {MT_DEVICE, "expected a grid of at most 2147483647 blocks, found " + std::to_string(tiles)};
  void *arguments[] = {&params, &table};
  Result result = driver_.launchKernel(on.functions[helper], static_cast<unsigned>(tiles), count, 1,
                                       MT_GPU_CALL_THREADS, 1, 1, 0, stream, arguments, nullptr);
  return result == success ? Status() : failure(driver_, result, on.gpu->title() + ": cannot record a kernel");
}

Status Libraries::enqueue(int device, const Gpu &gpu, const DeviceProgram &program, const BoundStep &step,
                          const std::byte *params, const std::byte *table, Stream stream) {
  OnGpu &here = on(gpu);
  const Choice &choice = choiceOf(step);
  const fb::LibraryCall &call = *choice.call;
  int64_t shards = program.maxRows / shardRows_;
  auto at = [&](size_t segment) { return table + segment * sizeof(Tables::segments[0]); };
  uint64_t kernel = kernelElements(choice), filters = call.filters();
  bool images = isConvolution(call), tree = isTree(call);
  auto transposeKernel = [&] {
    return launch(here, transpose, transposeTiles(filters, kernel / filters), 1, params, at(transposed), stream);
  };
  Status status;
  if (images && !tree)
    status = transposeKernel();
  if (tree) {
    uint64_t longest = std::max(choice.sizes.left, choice.sizes.right) * static_cast<uint64_t>(program.maxRows);
    status = launch(here, clearRows, ceilDiv(longest, clearTile), 2, params, at(clearLeft), stream);
  }
  CallPlaces places = placesOf(device, program, step, 0);
  if (status.ok())
    status = libraryOf(here, call)->enqueue(call, shardRows_, choice.algorithm, places, shards, stream);
  if (!status.ok())
    return std::move(status).in(gpu.title() + ": ");
  if (tree)
    status = launch(here, sumShards, ceilDiv(choice.sizes.result, sumTile), 1, params, at(summed), stream);
  if (status.ok() && images && tree)
    status = transposeKernel();
  return status;
}

// Returns the operands' addresses for the shards from `first` on.
CallPlaces Libraries::placesOf(int device, const DeviceProgram &program, const BoundStep &step, int64_t first) {
  const Choice &choice = choiceOf(step);
  const fb::LibraryCall &call = *choice.call;
  Cut parts = cut(choice, program.maxRows / shardRows_);
  std::byte *workspace = workspaces_[device];
  auto buffer = [&](uint32_t index) { return static_cast<std::byte *>(step.segments[0].buffers[index]); };
  auto past = [&](uint64_t elements, int64_t samples) {
    return elements * sizeof(float) * static_cast<uint64_t>(first * samples);
  };
  bool tree = isTree(call), images = isConvolution(call);
  CallPlaces places;
  places.left = buffer(call.left()) + past(choice.sizes.left, shardRows_);
  places.right = images && !tree ? workspace : buffer(call.right()) + past(choice.sizes.right, tree ? shardRows_ : 0);
  places.bias = call.bias() < 0 ? nullptr : buffer(static_cast<uint32_t>(call.bias()));
  places.result = tree ? workspace + parts.partials + past(choice.sizes.result, 1)
                       : buffer(call.result()) + past(choice.sizes.result, shardRows_);
  places.workspace = workspace + parts.library;
  return places;
}

} // namespace mtrun::cuda
