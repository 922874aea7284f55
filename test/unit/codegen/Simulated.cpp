// SPDX-License-Identifier: Apache-2.0
#include "test/unit/codegen/Simulated.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Tails.h"
#include "runtime/abi/kernel_symbol.h"
#include "test/simulated_cuda/Place.h"
#include "test/simulated_cuda/TensorCores.h"
#include "test/unit/codegen/Harness.h"
#include "llvm/ADT/StringSet.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace codegentest;

int64_t codegentest::GpuGrid::tiles(const mt_kernel_params &params, int64_t count) const {
  if (elementsPerTile)
    return (count + elementsPerTile - 1) / elementsPerTile;
  return (rowsPerTile ? (params.rows + rowsPerTile - 1) / rowsPerTile : 1) * innerTiles;
}

namespace {
bool checksAlignment = false;
constexpr size_t stackBytes = 64 << 10;

enum class State { ready, atBarrier, atShuffle, done };
struct Fiber {
  mt_sim_thread thread = {};
  simulated::Place place;
  State state = State::ready;
  uint32_t value = 0, mask = 0; // of a shuffle
};

class Block {
public:
  Block(mt_sim_kernel_fn kernel, const mt_kernel_params &params, const mt_gpu_word *segment, int64_t threads,
        int64_t sharedBytes)
      : kernel(kernel), params(params), segment(segment), fibers(threads), stacks(new std::byte[threads * stackBytes]),
        memory(sharedBytes / sizeof(Line) + 1), sharedBytes(sharedBytes) {}
  void run(uint32_t tile);

private:
  mt_sim_kernel_fn kernel;
  const mt_kernel_params &params;
  const mt_gpu_word *segment;
  std::vector<Fiber> fibers;
  std::unique_ptr<std::byte[]> stacks; // not initialised: most of it is never used
  struct alignas(1024) Line {
    char bytes[1024] = {};
  };
  std::vector<Line> memory;
  char *shared = reinterpret_cast<char *>(memory.data());
  size_t sharedBytes;
  simulated::Place scheduler;
  Fiber *current = nullptr;

  static Block *running;
  static void enter();
  static void misaligned(const mt_sim_thread *, uint64_t address, uint32_t bytes) {
    if (!checksAlignment)
      return; // operands end at an unreadable page, wherever they then begin
    std::fprintf(stderr, "expected a multiple of %u bytes, found %u beyond one\n", bytes,
                 static_cast<unsigned>(address % bytes));
    _exit(7);
  }
  static void stop(State state) {
    Fiber &fiber = *running->current;
    fiber.state = state;
    fiber.place.goTo(running->scheduler);
  }
  static void barrier(const mt_sim_thread *) { stop(State::atBarrier); }
  static uint32_t shuffle(const mt_sim_thread *, uint32_t value, uint32_t mask) {
    Fiber &fiber = *running->current;
    fiber.value = value;
    fiber.mask = mask;
    stop(State::atShuffle);
    return fiber.value;
  }
  bool exchange(); // between the lanes of each warp that wait for that; false: none do
};
Block *Block::running = nullptr;
} // namespace

void Block::enter() {
  Fiber &mine = *running->current;
  running->kernel(&running->params, running->segment, &mine.thread);
  stop(State::done);
}

void Block::run(uint32_t tile) {
  running = this;
  std::fill(shared, shared + sharedBytes, char(0xff)); // NaNs
  for (size_t i = 0; i < fibers.size(); ++i) {
    Fiber &fiber = fibers[i];
    fiber.state = State::ready;
    fiber.thread = {static_cast<uint32_t>(i),
                    tile,
                    0,
                    static_cast<uint32_t>(fibers.size()),
                    shared,
                    barrier,
                    shuffle,
                    nullptr,
                    misaligned,
                    nullptr,
                    nullptr,
                    nullptr};
    simulated::setTensorCores(fiber.thread);
    fiber.place.begin(stacks.get() + i * stackBytes, stackBytes, enter);
  }
  // From barrier to barrier, the last thread first.
  for (;;) {
    do
      for (size_t i = fibers.size(); i-- > 0;) {
        current = &fibers[i];
        if (current->state == State::ready)
          scheduler.goTo(current->place);
      }
    while (exchange());
    size_t waiting =
        std::count_if(fibers.begin(), fibers.end(), [](const Fiber &fiber) { return fiber.state == State::atBarrier; });
    size_t done =
        std::count_if(fibers.begin(), fibers.end(), [](const Fiber &fiber) { return fiber.state == State::done; });
    if (done == fibers.size())
      return;
    if (waiting != fibers.size()) {
      std::fprintf(stderr, "expected all %zu threads at a barrier, found %zu\n", fibers.size(), waiting);
      std::abort();
    }
    for (Fiber &fiber : fibers)
      fiber.state = State::ready;
  }
}

bool Block::exchange() {
  constexpr size_t warpThreads = 32;
  bool any = false;
  for (size_t begin = 0; begin < fibers.size(); begin += warpThreads) {
    size_t lanes = std::min(warpThreads, fibers.size() - begin);
    Fiber *warp = &fibers[begin];
    auto waits = [&](const Fiber &fiber) { return fiber.state == State::atShuffle && fiber.mask == warp->mask; };
    if (!std::all_of(warp, warp + lanes, waits) || warp->mask >= lanes)
      continue;
    std::vector<uint32_t> values(lanes);
    for (size_t lane = 0; lane < lanes; ++lane)
      values[lane] = warp[lane ^ warp->mask].value;
    for (size_t lane = 0; lane < lanes; ++lane) {
      warp[lane].value = values[lane];
      warp[lane].state = State::ready;
    }
    any = true;
  }
  return any;
}

void codegentest::runSimulated(mt_sim_kernel_fn kernel, const GpuGrid &grid, const mt_kernel_params &params,
                               const std::vector<void *> &buffers, int64_t count) {
  std::vector<mt_gpu_word> segment{{.count = count}};
  for (void *buffer : buffers)
    segment.push_back({.buffer = buffer});
  Block block(kernel, params, segment.data(), grid.threads, grid.sharedBytes);
  for (int64_t tile = grid.tiles(params, count); tile >= 0; --tile)
    block.run(static_cast<uint32_t>(tile));
}

using Integers = std::function<int32_t(int64_t)>;

namespace {
// A tensor of a kernel in memory that ends at an unreadable page.
struct Operand {
  mlir::Type element;
  int64_t count;
  Guarded cpu, memory;
  char *gpu;

  // Of as many bits as the tensor cores' formats have.
  Operand(mlir::Value value, int64_t rows, std::mt19937 *random, int64_t beyond, int shift = 8,
          const Integers &integers = nullptr)
      : element(mtc::elementOf(value)), count(mtc::innerCount(value) * (mtc::isSplit(value) ? rows : 1)), cpu(bytes()),
        memory(beyond < 0 ? (bytes() + 15) / 16 * 16 : bytes() + beyond, /*atEnd=*/beyond < 0),
        gpu(memory.as<char>() + std::max<int64_t>(0, beyond)) {
    for (int64_t i = 0; random && i < count; ++i) {
      uint32_t bits = (*random)();
      float number = (static_cast<int32_t>(bits) >> shift) * std::ldexp(1.0f, shift - 31);
      if (element.isF32())
        cpu.as<float>()[i] = number;
      else if (element.isBF16())
        cpu.as<uint16_t>()[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
      else if (element.isF16())
        cpu.as<uint16_t>()[i] = std::bit_cast<uint16_t>(static_cast<_Float16>(number));
      else if (element.isInteger(1))
        cpu.as<uint8_t>()[i] = bits & 1;
      else
        cpu.as<int32_t>()[i] = integers ? integers(i) : static_cast<int32_t>(bits % 13) - 1;
    }
    std::memcpy(gpu, cpu.as<char>(), bytes());
  }
  size_t bytes() const { return count * mtc::Emitter::bytes(element); }
  float number(const char *from, int64_t i) const {
    if (element.isF32())
      return reinterpret_cast<const float *>(from)[i];
    return simulated::halfOf(reinterpret_cast<const uint16_t *>(from)[i], element.isBF16());
  }
  bool equal() const { return std::memcmp(cpu.as<char>(), gpu, bytes()) == 0; }
  // Empty if near: some are sums of thousands of terms of about 1, in another order.
  std::string difference(float tolerance, bool ofLargest) const {
    float largest = 1;
    for (int64_t i = 0; ofLargest && i < count; ++i)
      largest = std::max(largest, std::fabs(number(cpu.as<char>(), i)));
    if (element.isInteger())
      return equal() ? "" : "integers that differ";
    for (int64_t i = 0; i < count; ++i) {
      float a = number(cpu.as<char>(), i), b = number(gpu, i);
      bool near =
          a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance * std::max(largest, std::fabs(a));
      if (!near)
        return "element " + std::to_string(i) + ": expected " + std::to_string(a) + ", found " + std::to_string(b);
    }
    return "";
  }
};

struct Loaded {
  int file = memfd_create("kernels", 0);
  void *library = nullptr;
  explicit Loaded(const std::vector<char> &image) {
    if (file < 0 || write(file, image.data(), image.size()) != static_cast<ssize_t>(image.size()))
      std::abort();
    library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      std::abort();
  }
  ~Loaded() {
    dlclose(library);
    close(file);
  }
  template <typename Function> Function find(llvm::StringRef name) const {
    return reinterpret_cast<Function>(dlsym(library, mtrun::kernelSymbol(name).c_str()));
  }
};
} // namespace

static bool isAttention(mlir::plan::KernelOp op) {
  mlir::mt::KernelKind kind = op.getKind();
  return kind == mlir::mt::KernelKind::attention || kind == mlir::mt::KernelKind::attention_gradient;
}

// Kernels whose chains are those of the CPU; convolutions have channels innermost, and zeros of the padding among them.
// Sums over more rows than a slice has are sums of slices.
static bool isExact(mlir::plan::KernelOp op, const mtc::CodegenOptions &options) {
  mlir::mt::KernelKind kind = op.getKind();
  bool product = kind == mlir::mt::KernelKind::matmul || kind == mlir::mt::KernelKind::matmul_wgrad;
  if (product && mlir::mt::Compilation(op).getPrecision() != "f32")
    return false;
  using Kind = mlir::mt::KernelKind;
  if (isAttention(op))
    return false;
  int64_t shardRows = options.shardRows * (options.fast ? mlir::mt::Compilation(op).getShards() : 1);
  if (kind == Kind::reduce && shardRows > mtc::reduceSliceRows)
    return false;
  return kind != Kind::rows && kind != Kind::single && kind != Kind::conv && kind != Kind::conv_wgrad;
}

// Attention rounds probabilities to what tensor cores take: an error is one of the largest results.
static float toleranceOf(mlir::plan::KernelOp op) {
  llvm::StringRef precision = mlir::mt::Compilation(op).getPrecision();
  return !isAttention(op) || precision == "f32" ? 5e-5f : precision == "bf16" ? 1e-2f : 2e-3f;
}

static std::string compareKernel(mlir::plan::KernelOp op, bool exact, const Loaded &cpu, const Loaded &gpu,
                                 int64_t rows, void *scratch, std::mt19937 &random, int64_t beyond,
                                 const Integers &integers) {
  mlir::Block &body = op.getBody().front();
  bool rounded = mlir::mt::Compilation(op).getPrecision() != "f32";
  std::vector<Operand> operands;
  for (mlir::Value argument : body.getArguments())
    operands.emplace_back(argument, rows, &random, beyond, rounded ? 24 : 8, integers);
  for (mlir::Value yield : body.getTerminator()->getOperands())
    operands.emplace_back(yield, rows, nullptr, beyond);
  std::vector<void *> cpuBuffers, gpuBuffers;
  for (Operand &operand : operands) {
    cpuBuffers.push_back(operand.cpu.as<void>());
    gpuBuffers.push_back(operand.gpu);
  }
  mlir::mt::KernelKind kind = op.getKind();
  int64_t count = kind == mlir::mt::KernelKind::elementwise ? operands.back().count : 0;
  mlir::plan::GpuGridAttr blocks = op.getGpuGridAttr();
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> lines((4 * MT_GPU_COUNTERS + blocks.getPartialBytes()) / sizeof(Line) + 1);
  char *partials = lines.front().bytes;
  mt_kernel_params params{rows, 3, rows + 5, count, 11, partials + 4 * MT_GPU_COUNTERS, scratch, 0};
  Grid grid{static_cast<int64_t>(op.getRowsPerTile().value_or(0)), static_cast<int64_t>(op.getInnerTiles().value_or(1)),
            static_cast<int64_t>(op.getElementsPerTile().value_or(0))};
  cpu.find<mt_kernel_fn>(op.getSymName())(&params, cpuBuffers.data(), 0, grid.tiles(params));
  params.count = 0;
  params.scratch = nullptr;
  runSimulated(gpu.find<mt_sim_kernel_fn>(op.getSymName()),
               {blocks.getThreads(), blocks.getRowsPerTile(), blocks.getInnerTiles(), blocks.getElementsPerTile(),
                blocks.getSharedBytes()},
               params, gpuBuffers, count);
  if (std::any_of(partials, partials + 4 * MT_GPU_COUNTERS, [](char byte) { return byte != 0; }))
    return "kernel " + op.getSymName().str() + ": counters are not 0 after it\n";
  for (size_t i = body.getNumArguments(); i < operands.size(); ++i) {
    std::string problem = operands[i].difference(toleranceOf(op), isAttention(op));
    if (problem.empty() && exact && !operands[i].equal())
      problem = "near, but not the same bits";
    if (!problem.empty())
      return "kernel " + op.getSymName().str() + ", result " + std::to_string(i - body.getNumArguments()) + ": " +
             problem + "\n";
  }
  return "";
}

// A launch and its only tail. The CPU's tail reads the results of the GPU's head.
static std::string compareTail(mlir::plan::LaunchOp head, mlir::plan::LaunchOp tail, mlir::ModuleOp module,
                               const Loaded &cpu, const Loaded &gpu, int64_t rows, void *scratch,
                               std::mt19937 &random) {
  mlir::SymbolTable symbols(module);
  auto first = symbols.lookup<mlir::plan::KernelOp>(head.getKernel());
  auto second = symbols.lookup<mlir::plan::KernelOp>(tail.getKernel());
  std::vector<std::unique_ptr<Operand>> operands;
  llvm::DenseMap<mlir::Value, char *> known; // by buffer
  std::vector<void *> ofHead, ofTail;
  auto add = [&](mlir::Value buffer, mlir::Value value, std::mt19937 *content, std::vector<void *> &to) {
    char *&memory = known[buffer];
    if (!memory)
      memory = operands.emplace_back(std::make_unique<Operand>(value, rows, content, -1, 24))->gpu;
    to.push_back(memory);
  };
  for (auto [buffer, value] : llvm::zip_equal(head.getReads(), first.getBody().getArguments()))
    add(buffer, value, &random, ofHead);
  for (auto [buffer, value] : llvm::zip_equal(head.getWrites(), first.getBody().front().getTerminator()->getOperands()))
    add(buffer, value, nullptr, ofHead);
  for (auto [buffer, value] : llvm::zip_equal(tail.getReads(), second.getBody().getArguments()))
    add(buffer, value, &random, ofTail);
  size_t results = operands.size();
  for (auto [buffer, value] :
       llvm::zip_equal(tail.getWrites(), second.getBody().front().getTerminator()->getOperands()))
    add(buffer, value, nullptr, ofTail);
  mlir::plan::GpuGridAttr blocks = first.getGpuGridAttr();
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> lines((4 * MT_GPU_COUNTERS + blocks.getPartialBytes()) / sizeof(Line) + 1);
  mt_kernel_params params{rows, 3, rows + 5, 0, 11, lines.front().bytes + 4 * MT_GPU_COUNTERS, nullptr, 0};
  std::vector<void *> all(ofHead);
  all.insert(all.end(), ofTail.begin(), ofTail.end());
  runSimulated(gpu.find<mt_sim_kernel_fn>(first.getSymName()),
               {blocks.getThreads(), blocks.getRowsPerTile(), blocks.getInnerTiles(), blocks.getElementsPerTile(),
                blocks.getSharedBytes()},
               params, all, 0);
  for (size_t i = results; i < operands.size(); ++i)
    ofTail[ofTail.size() - operands.size() + i] = operands[i]->cpu.as<void>();
  params.scratch = scratch;
  Grid grid{static_cast<int64_t>(second.getRowsPerTile().value_or(0)),
            static_cast<int64_t>(second.getInnerTiles().value_or(1)), 0};
  cpu.find<mt_kernel_fn>(second.getSymName())(&params, ofTail.data(), 0, grid.tiles(params));
  for (size_t i = results; i < operands.size(); ++i)
    if (std::string problem = operands[i]->difference(5e-5f, /*ofLargest=*/true); !problem.empty())
      return "tail " + second.getSymName().str() + ", result " + std::to_string(i - results) + ": " + problem + "\n";
  return "";
}

KernelComparison codegentest::compareKernels(mlir::ModuleOp module, int64_t shardRows, bool fast, int64_t rows,
                                             unsigned seed, int64_t beyond, const Integers &integers,
                                             const std::string &simulated) {
  mtc::CodegenOptions options;
  options.targets = {"x86-64-v3"};
  options.gpus = {simulated};
  options.shardRows = shardRows;
  options.fast = fast;
  KernelComparison result;
  if (failed(mtc::setGrids(module)))
    return {"no grids\n"};
  auto cpu = mtc::generateCode(module, options);
  auto gpu = mtc::generateGpuCode(module, options);
  if (failed(cpu) || failed(gpu))
    return {"no code\n"};
  Loaded cpuCode(cpu->front().elf), gpuCode(gpu->front().elf);
  std::mt19937 random(seed);
  int64_t most = 0;
  for (int64_t bytes : cpu->front().scratch)
    most = std::max(most, bytes);
  Guarded scratch = scratchOf(most);
  checksAlignment = beyond >= 0;
  llvm::StringSet<> withTails;
  mlir::SymbolTable symbols(module);
  for (auto program : module.getOps<mlir::plan::ProgramOp>()) {
    mlir::plan::LaunchOp last;
    for (auto launch : program.getBody().front().getOps<mlir::plan::LaunchOp>()) {
      if (mlir::mt::isTail(launch)) {
        withTails.insert(last.getKernel());
        withTails.insert(launch.getKernel());
        result.problems += compareTail(last, launch, module, cpuCode, gpuCode, rows, scratch.as<void>(), random);
        ++result.tails;
        result.sums += symbols.lookup<mlir::plan::KernelOp>(last.getKernel()).getGpuGridAttr().getPartialBytes() > 4;
      }
      last = launch;
    }
  }
  for (auto op : module.getOps<mlir::plan::KernelOp>()) {
    if (withTails.contains(op.getSymName()))
      continue;
    bool exact = isExact(op, options);
    result.problems += compareKernel(op, exact, cpuCode, gpuCode, rows, scratch.as<void>(), random, beyond, integers);
    ++result.kernels;
    result.exact += exact;
  }
  return result;
}
