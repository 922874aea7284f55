// SPDX-License-Identifier: Apache-2.0
//
// Which algorithms are chosen of what libraries propose, on the simulated ones: with their knobs, without fallbacks
// unless these are asked for, and only such as compute any number of a device's shards.
#include "runtime/device/cuda/Blas.h"
#include "runtime/device/cuda/Dnn.h"
#include "runtime/device/cuda/Gpus.h"

#include "Child.h"

#include <gtest/gtest.h>

namespace mtrun::cuda {
namespace {

namespace fb = ::mt::plan;

// Runs `body` with the first simulated GPU's context.
std::string onGpu(const std::function<Status()> &body) {
  return test::inChild({{"MTRUN_CUDA_CUDNN", MTC_BINARY_DIR "/lib/libcudnn-simulated.so"},
                        {"MTRUN_CUDA_CUBLASLT", MTC_BINARY_DIR "/lib/libcublasLt-simulated.so"}},
                       [&] {
                         const Driver *driver = nullptr;
                         std::vector<Gpu> gpus;
                         Status status = openDriver(driver);
                         if (status.ok())
                           status = listGpus(*driver, gpus);
                         if (!status.ok())
                           return status;
                         EXPECT_EQ(driver->primaryCtxRetain(&gpus[0].context, gpus[0].device), success);
                         EXPECT_EQ(driver->ctxSetCurrent(gpus[0].context), success);
                         status = body();
                         EXPECT_EQ(driver->primaryCtxRelease(gpus[0].device), success);
                         return status;
                       });
}

flatbuffers::DetachedBuffer pack(const fb::LibraryCallT &call) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::LibraryCall::Pack(builder, &call));
  return builder.Release();
}

flatbuffers::DetachedBuffer makeConvolution(fb::CallKind kind) {
  fb::LibraryCallT call;
  call.kind = kind;
  call.down = std::make_unique<fb::CallAxis>(6, 6, 3, 1, 1, 1, 1);
  call.across = std::make_unique<fb::CallAxis>(6, 6, 3, 1, 1, 1, 1);
  call.channels = call.filters = 4;
  call.groups = 1;
  return pack(call);
}

flatbuffers::DetachedBuffer makeProduct() {
  fb::LibraryCallT call;
  call.kind = fb::CallKind::Product;
  call.lines = 1;
  call.depth = call.columns = 8;
  return pack(call);
}

std::vector<std::string> names(CallLibrary &library, const flatbuffers::DetachedBuffer &call, const Wanted &wanted) {
  std::vector<Algorithm> found;
  Status status = library.algorithms(*flatbuffers::GetRoot<fb::LibraryCall>(call.data()), 2, wanted, found);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<std::string> list;
  for (const Algorithm &algorithm : found)
    list.push_back(algorithm.name + ", " + std::to_string(algorithm.workspace) + " bytes");
  return list;
}

using Names = std::vector<std::string>;
constexpr uint64_t much = 1 << 20;

TEST(LibraryChoice, KnobsOfAConfigurationAreThoseThatWereProposed) {
  EXPECT_EQ(onGpu([] {
              std::unique_ptr<CallLibrary> library;
              if (Status status = openDnn(library); !status.ok())
                return status;
              auto call = makeConvolution(fb::CallKind::Convolution);
              EXPECT_EQ(
                  names(*library, call, {much, 16, 4, false}),
                  (Names{"engine 2, 0 bytes", "engine 3, knobs 2:1, 8192 bytes", "engine 3, knobs 2:2, 16384 bytes"}));
              EXPECT_EQ(names(*library, call, {8192, 16, 4, false}),
                        (Names{"engine 2, 0 bytes", "engine 3, knobs 2:1, 8192 bytes"}));
              return Status();
            }),
            "0");
}

// In float32 the favourites of cuDNN for gradients of images are tensor cores: what is left are generic kernels.
TEST(LibraryChoice, FallbacksAreTakenOnlyWhereTheyAreAskedFor) {
  EXPECT_EQ(onGpu([] {
              std::unique_ptr<CallLibrary> library;
              if (Status status = openDnn(library); !status.ok())
                return status;
              auto call = makeConvolution(fb::CallKind::ConvolutionInput);
              EXPECT_EQ(names(*library, call, {much, 1, 4, false}), Names());
              EXPECT_EQ(names(*library, call, {much, 1, 4, true}), Names{"engine 4, 0 bytes"});
              return Status();
            }),
            "0");
}

TEST(LibraryChoice, AnAlgorithmOfAProductComputesAnyNumberOfShards) {
  EXPECT_EQ(onGpu([] {
              std::unique_ptr<CallLibrary> library;
              if (Status status = openBlas(13000, library); !status.ok())
                return status;
              auto bytes = makeProduct();
              auto algorithms = [&](int64_t shards) {
                Names list = names(*library, bytes, {much, 16, shards, false});
                for (std::string &name : list) // the second word is the number
                  name = name.substr(31, 1) + name.substr(name.find(','));
                return list;
              };
              EXPECT_EQ(algorithms(1), (Names{"2, 0 bytes", "3, 4096 bytes", "4, 0 bytes", "5, 4096 bytes"}));
              EXPECT_EQ(algorithms(4), (Names{"4, 0 bytes", "5, 4096 bytes"}));
              // Nor may a file name another one.
              const auto &call = *flatbuffers::GetRoot<fb::LibraryCall>(bytes.data());
              std::vector<Algorithm> found;
              if (Status status = library->algorithms(call, 2, {much, 16, 1, false}, found); !status.ok())
                return status;
              std::vector<bool> good;
              for (Algorithm &algorithm : found)
                good.push_back(library->find(call, 2, 4, algorithm).ok());
              EXPECT_EQ(good, (std::vector<bool>{false, false, true, true}));
              return Status();
            }),
            "0");
}

} // namespace
} // namespace mtrun::cuda
