// SPDX-License-Identifier: Apache-2.0
#include "test/unit/codegen/Harness.h"
#include "compiler/codegen/Codegen.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "runtime/abi/kernel_symbol.h"
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <pthread.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace codegentest;

Guarded::Guarded(size_t bytes, bool atEnd) {
  size_t page = sysconf(_SC_PAGESIZE), inner = (bytes + page - 1) / page * page + page;
  mapped = inner + 2 * page;
  map = static_cast<char *>(mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (map == MAP_FAILED || mprotect(map + page, inner, PROT_READ | PROT_WRITE) != 0)
    std::abort();
  data = atEnd ? map + page + inner - bytes : map + page;
}
Guarded::~Guarded() {
  if (map)
    munmap(map, mapped);
}
Guarded::Guarded(Guarded &&other) noexcept : map(other.map), mapped(other.mapped), data(other.data) {
  other.map = nullptr;
}

std::vector<float> codegentest::randoms(size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(n);
  for (float &value : values)
    value = (static_cast<int32_t>(engine()) >> 8) * 0x1p-23f;
  return values;
}

std::string codegentest::kernelText(const std::string &name, const std::string &kind, const std::string &body) {
  return "plan.kernel @" + name + " attributes {kind = #mt<kernel_kind " + kind +
         ">, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {\n" +
         body + "\n}\n";
}

int64_t Grid::tiles(const mt_kernel_params &params) const {
  if (elementsPerTile)
    return (params.count + elementsPerTile - 1) / elementsPerTile;
  return (rowsPerTile ? (params.rows + rowsPerTile - 1) / rowsPerTile : 1) * innerTiles;
}

Code::Code(const std::string &target, const std::vector<char> &image, std::map<std::string, Grid> grids)
    : target(target), image(image), grids(std::move(grids)) {
  // The loader knows libraries by their paths: the file stays open, so that no other gets its number.
  file = memfd_create("kernels", 0);
  if (file < 0 || write(file, image.data(), image.size()) != static_cast<ssize_t>(image.size()))
    std::abort();
  library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "cannot load kernels: %s\n", dlerror());
    std::abort();
  }
}
Code::~Code() {
  dlclose(library);
  close(file);
}

mt_kernel_fn Code::find(const std::string &kernel) const {
  void *symbol = dlsym(library, mtrun::kernelSymbol(kernel).c_str());
  if (!symbol) {
    std::fprintf(stderr, "expected a symbol %s\n", kernel.c_str());
    std::abort();
  }
  return reinterpret_cast<mt_kernel_fn>(symbol);
}

int64_t Code::tiles(const std::string &kernel, const mt_kernel_params &params) const {
  return grids.at(kernel).tiles(params);
}

// On a thread whose stack ends at an unreadable page, with room for a kernel and what the system wants besides.
static void onSmallStack(const std::function<void()> &body) {
  pthread_attr_t attributes;
  pthread_t thread;
  auto run = [](void *argument) -> void * {
    (*static_cast<const std::function<void()> *>(argument))();
    return nullptr;
  };
  if (pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstacksize(&attributes, MT_KERNEL_STACK_BYTES + 32768) != 0 ||
      pthread_create(&thread, &attributes, run, const_cast<std::function<void()> *>(&body)) != 0)
    std::abort();
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
}

int64_t Code::scratchBytes(const std::string &kernel) const { return grids.at(kernel).scratchBytes; }

Guarded codegentest::scratchOf(int64_t bytes) { return Guarded((bytes + 63) / 64 * 64); }

void Code::run(const std::string &kernel, const mt_kernel_params &params, const std::vector<void *> &buffers,
               int64_t shares) const {
  mt_kernel_fn function = find(kernel);
  int64_t all = tiles(kernel, params);
  Guarded scratch = scratchOf(scratchBytes(kernel));
  mt_kernel_params own = params;
  own.scratch = scratch.as<void>();
  onSmallStack([&] {
    for (int64_t share = shares - 1; share >= 0; --share)
      function(&own, buffers.data(), all * share / shares, all * (share + 1) / shares);
  });
}

std::vector<std::unique_ptr<Code>> codegentest::compile(const std::string &kernels, const Options &options) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::mt::MtDialect, mlir::plan::PlanDialect, mlir::shard::ShardDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  std::string text = "module attributes {mt.compilation = #mt.compilation<shards = " + std::to_string(options.shards) +
                     ">} {\n" + kernels + "}";
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module || failed(mtc::setGrids(*module)))
    std::abort();
  mtc::CodegenOptions codegen;
  codegen.shardRows = options.shardRows;
  codegen.fast = options.fast;
  if (options.dots && __builtin_cpu_supports("avx512bf16"))
    codegen.targets.push_back("x86-64-v4-bf16");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    codegen.targets.push_back("x86-64-v4");
  codegen.targets.push_back("x86-64-v3");
  auto made = mtc::generateCode(*module, codegen);
  if (failed(made))
    std::abort();
  std::map<std::string, Grid> grids;
  for (auto op : module->getOps<mlir::plan::KernelOp>())
    grids[op.getSymName().str()] = {static_cast<int64_t>(op.getRowsPerTile().value_or(0)),
                                    static_cast<int64_t>(op.getInnerTiles().value_or(1)),
                                    static_cast<int64_t>(op.getElementsPerTile().value_or(0)), 0};
  for (const mtc::TargetCode &code : *made)
    for (auto [op, bytes] : llvm::zip(module->getOps<mlir::plan::KernelOp>(), code.scratch))
      grids[op.getSymName().str()].scratchBytes = std::max(grids[op.getSymName().str()].scratchBytes, bytes);
  grids[std::string(mtrun::sumKernelName)] = {0, 1, mtc::elementwiseElementsPerTile, 0};
  std::vector<std::unique_ptr<Code>> codes;
  for (const mtc::TargetCode &target : *made)
    codes.push_back(std::make_unique<Code>(target.name, target.elf, grids));
  return codes;
}
