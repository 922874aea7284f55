// SPDX-License-Identifier: Apache-2.0
//
// What the real cuDNN plans for convolutions on GPUs that are described, not there: it says the knobs of a
// configuration only to who asks with room for them, so that once each of its proposals became the same plan of default
// knobs. Runs where the library is; needs neither a GPU nor a driver.
#include "runtime/device/cuda/DnnGraph.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <set>

namespace mtrun::cuda {
namespace {

namespace fb = ::mt::plan;

// Null: it is not here.
const DnnFunctions *library() {
  static const DnnFunctions *found = [] {
    static DnnFunctions functions;
    const char *named = std::getenv("MTC_TEST_CUDNN");
    void *library = dlopen(named ? named : "libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    for (const char *folder : {"/usr/local/cuda/lib64/libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"})
      library = library || named ? library : dlopen(folder, RTLD_NOW | RTLD_LOCAL);
    bool complete = library;
#define MTC_FIND(member, symbol, type, parameters)                                                                     \
  functions.member = library ? reinterpret_cast<decltype(functions.member)>(dlsym(library, #symbol)) : nullptr;        \
  complete &= functions.member != nullptr;
    MTRUN_DNN_FUNCTIONS(MTC_FIND)
#undef MTC_FIND
    return complete ? &functions : nullptr;
  }();
  return found;
}

struct DescribedGpu {
  const char *name;
  int capability, processors, sharedBytes, threads, blocks, kilohertz, memoryKilohertz;
  int64_t cacheBytes, bytes;

  std::string json() const {
    auto entry = [](const char *key, int64_t value) {
      return ", \"" + std::string(key) + "\": " + std::to_string(value);
    };
    return "{\"deviceName\": \"" + std::string(name) + "\"" + entry("deviceVer", capability) +
           entry("driverVer", 13000) + entry("cudaDeviceId", 0) +
           ", \"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64]" +
           entry("regsPerBlock", 65536) + entry("multiProcessorCount", processors) + entry("warpSize", 32) +
           entry("maxSharedMemoryPerBlock", 49152) + entry("maxSharedMemoryPerBlockOptin", sharedBytes) +
           entry("reservedSharedMemoryPerBlock", 1024) + entry("maxRegistersPerSM", 65536) +
           entry("maxCtasPerSM", blocks) + entry("maxThreadsPerBlock", 1024) + entry("maxThreadsPerSM", threads) +
           entry("pciDeviceId", 0) + entry("isTccDriver", 0) + entry("supportCoopLaunch", 1) +
           entry("smClockRateKHz", kilohertz) + entry("memClockRateKHz", memoryKilohertz) +
           entry("l2CacheSize", cacheBytes) + entry("totalGlobalMem", bytes) + "}";
  }
};
constexpr DescribedGpu gpus[] = {
    {"NVIDIA H100 80GB HBM3", 900, 132, 232448, 2048, 32, 1980000, 2619000, 52428800, 85029158912},
    {"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 2048, 32, 1410000, 1593000, 41943040, 85051572224},
    {"NVIDIA GeForce RTX 4090", 890, 128, 101376, 1536, 24, 2520000, 10501000, 75497472, 25393692672}};

// The convolutions of ResNet-50 that differ, on images of 224 x 224.
struct Shape {
  uint32_t channels, side, filters, taps, stride, padding;
};
constexpr Shape resnet50[] = {
    {3, 224, 64, 7, 2, 3},    {64, 56, 64, 1, 1, 0},    {64, 56, 64, 3, 1, 1},     {64, 56, 256, 1, 1, 0},
    {256, 56, 64, 1, 1, 0},   {256, 56, 128, 1, 2, 0},  {128, 28, 128, 3, 1, 1},   {128, 28, 512, 1, 1, 0},
    {256, 56, 512, 1, 2, 0},  {512, 28, 128, 1, 1, 0},  {512, 28, 256, 1, 2, 0},   {256, 14, 256, 3, 1, 1},
    {256, 14, 1024, 1, 1, 0}, {512, 28, 1024, 1, 2, 0}, {1024, 14, 256, 1, 1, 0},  {1024, 14, 512, 1, 2, 0},
    {512, 7, 512, 3, 1, 1},   {512, 7, 2048, 1, 1, 0},  {1024, 14, 2048, 1, 2, 0}, {2048, 7, 512, 1, 1, 0}};

flatbuffers::DetachedBuffer makeCall(const Shape &shape, fb::CallKind kind, fb::CallMath math) {
  uint32_t outputs = (shape.side + 2 * shape.padding - shape.taps) / shape.stride + 1;
  // Where the stride leaves rows out, nothing is padded behind them.
  fb::CallAxis axis(shape.side, outputs, shape.taps, shape.stride, 1, shape.padding, shape.padding);
  fb::LibraryCallT call;
  call.kind = kind;
  call.math = math;
  call.down = std::make_unique<fb::CallAxis>(axis);
  call.across = std::make_unique<fb::CallAxis>(axis);
  call.channels = shape.channels;
  call.filters = shape.filters;
  call.groups = 1;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::LibraryCall::Pack(builder, &call));
  return builder.Release();
}

struct Figures {
  size_t problems = 0, proposed = 0, favourites = 0, withKnobs = 0, finalized = 0;
};

// Plans all that is proposed for a convolution: what would be chosen is the first of them, and what tuning tries.
void planAll(const DnnFunctions &functions, const std::string &json, const DnnProblem &problem, Figures &figures) {
  ++figures.problems;
  bool chosen = false;
  for (int mode : {dnn::bestMode, dnn::fallbackMode}) {
    DnnDescriptors made(functions);
    DnnGpu gpu = {nullptr, makeGpu(made, json)};
    DnnDescriptor graph = makeGraph(made, gpu, problem);
    std::vector<DnnAlgorithm> proposals = propose(made, gpu, problem, graph, mode);
    ASSERT_EQ(made.code(), dnn::success) << functions.errorString(made.code());
    std::set<std::string> names;
    for (const DnnAlgorithm &proposal : proposals) {
      DnnAlgorithm read;
      ASSERT_TRUE(DnnAlgorithm::parse(proposal.name(), read)); // as a tuning file has it
      if (!names.insert(read.name()).second)
        continue;
      ++figures.proposed;
      figures.withKnobs += !read.knobs.empty();
      figures.favourites += mode == dnn::bestMode;
      DnnDescriptors own(functions);
      DnnGpu sameGpu = {nullptr, makeGpu(own, json)};
      uint64_t workspace = 0;
      DnnDescriptor plan = makePlan(own, sameGpu, problem, makeGraph(own, sameGpu, problem), read, workspace);
      figures.finalized += plan != nullptr;
      EXPECT_TRUE(plan) << "of the library's own proposal " << read.name() << ": " << functions.errorString(own.code());
      chosen |= plan != nullptr;
    }
  }
  EXPECT_TRUE(chosen) << "nothing was chosen";
}

TEST(DnnPlan, EveryProposalForResNet50Finalizes) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "cuDNN's own memory is never freed, which the leak checker of this build takes for ours";
#endif
  const DnnFunctions *functions = library();
  if (!functions)
    GTEST_SKIP() << "no libcudnn.so.9 here";
  if (functions->getVersion() < 90800)
    GTEST_SKIP() << "cuDNN 9.8 and newer take GPUs that are described, here is " << functions->getVersion();
  // Newer releases compile some engines through the driver's library, and propose nothing where they cannot load it.
  Dl_info where = {};
  ASSERT_NE(dladdr(reinterpret_cast<const void *>(functions->getVersion), &where), 0);
  std::string folder = where.dli_fname;
  folder.resize(folder.rfind('/') + 1);
  if (!dlopen((folder + "libcudnn_engines_runtime_compiled.so.9").c_str(), RTLD_NOW | RTLD_LOCAL))
    GTEST_SKIP() << "cuDNN " << functions->getVersion() << " lacks a library: " << dlerror();
  constexpr int64_t shardRows = 32; // a batch of 256, 8 shards
  for (const DescribedGpu &gpu : gpus)
    for (auto [name, type, math] :
         {std::tuple("f32", dnn::f32, fb::CallMath::F32), std::tuple("tf32", dnn::f32, fb::CallMath::TF32),
          std::tuple("bf16", dnn::bf16, fb::CallMath::F32)}) {
      Figures figures;
      for (const Shape &shape : resnet50)
        for (fb::CallKind kind :
             {fb::CallKind::Convolution, fb::CallKind::ConvolutionInput, fb::CallKind::ConvolutionTree}) {
          if (kind == fb::CallKind::ConvolutionInput && shape.channels == 3)
            continue; // nobody asks for the gradient of the images
          SCOPED_TRACE(std::string(gpu.name) + ", " + name + ", " + fb::EnumNameCallKind(kind) + " of " +
                       std::to_string(shape.side) + " x " + std::to_string(shape.channels) + " to " +
                       std::to_string(shape.filters) + ", " + std::to_string(shape.taps) + " taps, stride " +
                       std::to_string(shape.stride));
          flatbuffers::DetachedBuffer call = makeCall(shape, kind, math);
          planAll(*functions, gpu.json(), {*flatbuffers::GetRoot<fb::LibraryCall>(call.data()), shardRows, type},
                  figures);
        }
      EXPECT_GT(figures.withKnobs, 0u);
      std::printf("%s, %s: %zu convolutions, %zu configurations proposed (%zu of them favourites, %zu with knobs), %zu "
                  "finalized\n",
                  gpu.name, name, figures.problems, figures.proposed, figures.favourites, figures.withKnobs,
                  figures.finalized);
    }
}

} // namespace
} // namespace mtrun::cuda
