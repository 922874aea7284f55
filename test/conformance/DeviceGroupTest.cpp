// SPDX-License-Identifier: Apache-2.0
//
// What every kind of device must do: the contracts of runtime/device/DeviceGroup.h, one test each, for every kind.
#include "TestPlan.h"

#include "runtime/device/Collectives.h"
#include "runtime/device/DeviceGroup.h"
#include "runtime/support/device_memory.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>

namespace mtrun::test {
namespace {

struct Kind {
  const char *name;
  int devices, threads;
  bool executes; // the null device launches nothing
  int gpus = 0;  // GPUs that the devices are on, evenly
};

std::string kindName(const testing::TestParamInfo<Kind> &info) {
  const Kind &kind = info.param;
  return std::string(kind.name) + std::to_string(kind.devices) + "x" + std::to_string(kind.threads) +
         (kind.gpus > 1 ? "on" + std::to_string(kind.gpus) : "");
}

// GPUs are simulated, libcuda-simulated.so stands for the driver, unless MTC_TEST_GPU says to take those there are.
const bool simulated = [] {
  if (std::getenv("MTC_TEST_GPU"))
    return false;
  setenv("MTRUN_CUDA_DRIVER", MTC_BINARY_DIR "/lib/libcuda-simulated.so", 1);
  setenv("MTC_SIM_DEVICES", "4", 1);
  return true;
}();

// One device's part of a program, built step by step. Roomy vectors: pointers into them stay good.
struct Recorder {
  explicit Recorder(DeviceProgram &program) : program(program) {
    program.steps.reserve(256);
    program.segments.reserve(256);
    program.pointers.reserve(1024);
  }

  BoundStep &launch(KernelHandle kernel, bool waits, std::vector<void *> buffers) {
    BoundStep step = {};
    step.kernel = kernel;
    step.waits = waits;
    step.innerTiles = 1;
    step.threads = gpuThreads;
    step.segments = program.segments.data() + program.segments.size();
    program.steps.push_back(step);
    segment(program.steps.back(), 0, 0, std::move(buffers));
    return program.steps.back();
  }

  void segment(BoundStep &step, int64_t count, int64_t tiles, std::vector<void *> buffers) {
    auto inBuffers = static_cast<uint32_t>(buffers.size());
    program.segments.push_back({program.pointers.data() + program.pointers.size(), inBuffers, count, tiles});
    program.pointers.insert(program.pointers.end(), buffers.begin(), buffers.end());
    program.sizes.resize(program.pointers.size(), 1 << 20); // more than any test allocates
    ++step.segmentCount;
    step.elementTiles += tiles;
  }

  void allReduce(uint32_t index) {
    BoundStep step = {};
    step.allReduce = index;
    program.steps.push_back(step);
  }

  DeviceProgram &program;
};

class DeviceGroupTest : public testing::TestWithParam<Kind> {
protected:
  void SetUp() override {
    TestPlanShape shape;
    shape.gpu = true;
    shape.ptx = !simulated;
    std::vector<uint8_t> bytes = makePlan(shape);
    ASSERT_TRUE(Plan::loadMemory(bytes.data(), bytes.size(), plan).ok());
    GroupOptions options;
    options.devices = GetParam().devices;
    options.threads = GetParam().threads;
    for (int d = 0; d < GetParam().devices && GetParam().gpus; ++d)
      options.gpus.push_back(d * GetParam().gpus / GetParam().devices);
    std::vector<std::string> gpus;
    if (!simulated && GetParam().gpus > 1 && listDevices(gpus).ok() &&
        gpus.size() < static_cast<size_t>(GetParam().gpus))
      GTEST_SKIP() << "needs " << GetParam().gpus << " GPUs, found " << gpus.size();
    Status status = makeDeviceGroup(GetParam().name, options, group);
    ASSERT_TRUE(status.ok()) << status.message();
    status = group->loadCode(*plan, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    program.devices = std::vector<DeviceProgram>(static_cast<size_t>(options.devices));
    for (int d = 0; d < options.devices; ++d) {
      recorders.emplace_back(program.devices[d]);
      program.devices[d].firstRow = 10 * d;
      program.devices[d].maxRows = 10;
    }
  }

  int devices() const { return GetParam().devices; }

  template <typename T> T *allocate(int device, size_t count) {
    void *memory = nullptr;
    Status status = group->allocate(device, count * sizeof(T), &memory);
    EXPECT_TRUE(status.ok()) << status.message();
    return static_cast<T *>(memory);
  }

  template <typename T> std::vector<T> read(int device, const T *memory, size_t count) {
    std::vector<T> values(count);
    group->copyOut(device, values.data(), memory, count * sizeof(T));
    return values;
  }

  // A program of the caller's tensors: the second is twice the first.
  void recordDoubleRows() {
    for (int d = 0; d < devices(); ++d) {
      BoundStep &step = recorders[d].launch(group->kernel(DoubleRows), false, {nullptr, nullptr});
      step.rowsPerTile = 1;
      step.usesRows = true;
      program.devices[d].patches = {{&program.devices[d].pointers[0], 0, sizeof(float)},
                                    {&program.devices[d].pointers[1], 1, sizeof(float)}};
    }
    program.signature = {{sizeof(float), false}, {sizeof(float), true}};
  }

  void run(int64_t n, const void *const *tensors = nullptr) {
    Status status = group->prepare(program);
    ASSERT_TRUE(status.ok()) << status.message();
    group->run(program, {tensors, n, 99});
    ASSERT_TRUE(group->health().ok()) << group->health().message();
  }

  std::unique_ptr<Plan> plan;
  std::unique_ptr<DeviceGroup> group;
  BoundProgram program;
  std::vector<Recorder> recorders;
};

TEST_P(DeviceGroupTest, SaysWhatItIs) {
  EXPECT_STREQ(group->kind(), GetParam().name);
  EXPECT_EQ(group->devices(), GetParam().devices);
  EXPECT_EQ(group->threads(), GetParam().threads);
  EXPECT_GT(group->availableMemory(), 0u);
  EXPECT_STRNE(group->target(), "");
  EXPECT_NE(group->kernel(Probe), nullptr);
  EXPECT_EQ(group->launches(), 0u);
}

TEST_P(DeviceGroupTest, MemoryIsZeroAlignedAndCopied) {
  for (int d = 0; d < devices(); ++d) {
    EXPECT_NE(allocate<float>(d, 0), nullptr);
    auto *memory = allocate<uint8_t>(d, 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_EQ(read(d, memory, 1000), std::vector<uint8_t>(1000, 0));
    group->fill(d, memory + 1, 7, 998);
    uint8_t value = 9;
    group->copyIn(d, memory + 500, &value, 1);
    std::vector<uint8_t> want(1000, 7);
    want.front() = want.back() = 0;
    want[500] = 9;
    EXPECT_EQ(read(d, memory, 1000), want);
  }
}

TEST_P(DeviceGroupTest, RunsEveryTileOnceWithTheRowsOfTheStep) {
  constexpr size_t room = 64;
  std::vector<int32_t *> counters;
  std::vector<mt_kernel_params *> params;
  for (int d = 0; d < devices(); ++d) {
    counters.push_back(allocate<int32_t>(d, room));
    params.push_back(allocate<mt_kernel_params>(d, 1));
    BoundStep &step = recorders[d].launch(group->kernel(Probe), false, {counters[d], params[d]});
    step.rowsPerTile = 3;
    step.innerTiles = 2;
    step.usesRows = true;
  }
  uint64_t launches = 0;
  std::vector<std::vector<int32_t>> want(devices(), std::vector<int32_t>(room));
  for (int64_t n : {10 * devices(), 1, 7, 10, 11}) {
    run(n);
    for (int d = 0; d < devices(); ++d) {
      int64_t rows = std::clamp<int64_t>(n - 10 * d, 0, 10);
      launches += rows > 0;
      for (int64_t tile = 0; tile < (rows + 2) / 3 * 2; ++tile)
        want[d][tile] += GetParam().executes;
      EXPECT_EQ(read(d, counters[d], room), want[d]) << "n " << n << " device " << d;
      mt_kernel_params seen = read(d, params[d], 1)[0];
      if (rows == 0 || !GetParam().executes)
        continue;
      EXPECT_EQ(seen.rows, rows);
      EXPECT_EQ(seen.first_row, 10 * d);
      EXPECT_EQ(seen.global_rows, n);
      EXPECT_EQ(seen.count, 0);
      EXPECT_EQ(seen.seed, 99u);
    }
  }
  EXPECT_EQ(group->launches(), launches);
}

TEST_P(DeviceGroupTest, MapTilesGoThroughTheSegments) {
  int64_t counts[] = {13, 0, 1, 40};
  std::vector<int32_t *> counters;
  std::vector<mt_kernel_params *> params;
  for (int64_t count : counts) {
    counters.push_back(allocate<int32_t>(0, static_cast<size_t>(count) + 1));
    params.push_back(allocate<mt_kernel_params>(0, 1));
  }
  BoundStep &step = recorders[0].launch(group->kernel(Probe), false, {});
  step.elementwise = true;
  step.segments += step.segmentCount;
  step.segmentCount = 0;
  for (size_t s = 0; s < std::size(counts); ++s)
    recorders[0].segment(step, counts[s], (counts[s] + 3) / 4, {counters[s], params[s]});
  run(1);
  EXPECT_EQ(group->launches(), 1u);
  for (size_t s = 0; s < std::size(counts) && GetParam().executes; ++s) {
    std::vector<int32_t> want(static_cast<size_t>(counts[s]) + 1);
    std::fill_n(want.begin(), (counts[s] + 3) / 4, 1);
    EXPECT_EQ(read(0, counters[s], want.size()), want);
    EXPECT_EQ(read(0, params[s], 1)[0].count, counts[s]);
  }
}

TEST_P(DeviceGroupTest, ALaunchWithoutRowsRunsOnEmptyDevicesToo) {
  std::vector<float *> outs;
  for (int d = 0; d < devices(); ++d) {
    outs.push_back(allocate<float>(d, 64));
    recorders[d].launch(group->kernel(Rotate), false, {allocate<float>(d, 64), outs[d]}).innerTiles = 64;
  }
  run(1);
  EXPECT_EQ(group->launches(), static_cast<uint64_t>(devices()));
  std::vector<float> want(64);
  std::iota(want.begin(), want.end(), 0.0f);
  for (int d = 0; d < devices() && GetParam().executes; ++d)
    EXPECT_EQ(read(d, outs[d], 64), want);
}

TEST_P(DeviceGroupTest, WaitsOrderSteps) {
  constexpr int rounds = 40;
  std::vector<std::vector<float *>> buffers;
  for (int d = 0; d < devices(); ++d) {
    buffers.push_back({allocate<float>(d, 64), allocate<float>(d, 64)});
    for (int round = 0; round < rounds; ++round)
      recorders[d]
          .launch(group->kernel(Rotate), true, {buffers[d][round % 2], buffers[d][(round + 1) % 2]})
          .innerTiles = 64;
  }
  run(1);
  std::vector<float> want(64);
  for (int round = 0; round < rounds; ++round) {
    std::vector<float> next(64);
    for (int tile = 0; tile < 64; ++tile)
      next[tile] = want[(tile + 1) % 64] + static_cast<float>(tile);
    want = next;
  }
  for (int d = 0; d < devices() && GetParam().executes; ++d)
    EXPECT_EQ(read(d, buffers[d][rounds % 2], 64), want);
}

TEST_P(DeviceGroupTest, SignaturePointersStartAtTheDevicesFirstRow) {
  std::vector<float> in(static_cast<size_t>(10 * devices())), out(in.size(), -1);
  std::iota(in.begin(), in.end(), 1.0f);
  recordDoubleRows();
  const void *tensors[] = {in.data(), out.data()};
  size_t n = in.size() - 3;
  run(static_cast<int64_t>(n), tensors);
  for (size_t row = 0; row < in.size() && GetParam().executes; ++row)
    EXPECT_EQ(out[row], row < n ? in[row] * 2 : -1.0f) << row;
}

// Each launch has read its inputs when the next one is begun, and writes its outputs when it is finished.
TEST_P(DeviceGroupTest, LaunchesInFlightKeepTheirTensorsApart) {
  recordDoubleRows();
  ASSERT_TRUE(group->prepare(program).ok());
  constexpr int launches = 7;
  size_t n = static_cast<size_t>(10 * devices());
  std::vector<float> in(n);
  std::vector<std::vector<float>> out(launches, std::vector<float>(n, -1));
  int begun = 0;
  for (int done = 0; done < launches; ++done) {
    for (; begun < launches && begun < done + group->maxInFlight(); ++begun) {
      std::fill(in.begin(), in.end(), static_cast<float>(begun));
      const void *tensors[] = {in.data(), out[static_cast<size_t>(begun)].data()};
      StepArguments arguments = {tensors, static_cast<int64_t>(n) - begun, 99};
      group->begin(program, {&arguments, 1});
    }
    group->finish();
    ASSERT_TRUE(group->health().ok()) << group->health().message();
    for (size_t row = 0; row < n && GetParam().executes; ++row)
      EXPECT_EQ(out[static_cast<size_t>(done)][row],
                row + static_cast<size_t>(done) < n ? 2.0f * static_cast<float>(done) : -1.0f);
  }
}

TEST_P(DeviceGroupTest, AllReduceAddsPartialsInTreeOrder) {
  if (devices() == 1)
    return; // a lone device is given no all-reduce
  ReduceTree tree;
  tree.sum = group->kernel(SumPartials);
  tree.elementsPerTile = 4;
  tree.threads = gpuThreads;
  tree.sums = treeSums(std::vector<int>(static_cast<size_t>(devices()), 1));
  ASSERT_EQ(devices() & (devices() - 1), 0);
  program.tree = &tree;
  for (int64_t elements : {1, 5, 64, 1000, 4099}) {
    BoundAllReduce reduce = {elements, {}, {}};
    size_t count = static_cast<size_t>(elements), bytes = count * sizeof(float);
    program.staging.clear();
    std::vector<std::vector<float>> partials;
    for (int d = 0; d < devices(); ++d) {
      reduce.partials.push_back(allocate<float>(d, count));
      reduce.results.push_back(allocate<float>(d, count));
      program.staging.push_back(allocate<float>(d, mtrun::stagingElements(count, static_cast<uint64_t>(devices()))));
      partials.emplace_back(count);
      for (size_t i = 0; i < count; ++i)
        partials[d][i] = 1.0f / static_cast<float>(i + 3 * static_cast<size_t>(d) + 1);
      program.devices[d].steps.clear();
      recorders[d].allReduce(0);
    }
    program.allReduces = {reduce};
    for (int active = devices(); active > 0; --active) {
      std::vector<std::vector<float>> nodes = partials;
      for (int d = 0; d < devices(); ++d)
        group->copyIn(d, reduce.partials[d], partials[d].data(), bytes);
      nodes.resize(static_cast<size_t>(active));
      while (nodes.size() > 1) {
        std::vector<std::vector<float>> parents;
        for (size_t i = 0; i < nodes.size(); i += 2) {
          parents.push_back(nodes[i]);
          for (size_t e = 0; e < count && i + 1 < nodes.size(); ++e)
            parents.back()[e] += nodes[i + 1][e];
        }
        nodes = parents;
      }
      run(10 * active);
      for (int d = 0; d < devices() && GetParam().executes; ++d)
        EXPECT_EQ(read(d, reduce.results[d], count), nodes[0]) << elements << " elements, " << active << " active";
      if (active == devices())
        EXPECT_EQ(group->collectiveBytes(), 2 * static_cast<uint64_t>(devices() - 1) * bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllKinds, DeviceGroupTest,
                         testing::Values(Kind{"cpu", 1, 1, true}, Kind{"cpu", 1, 3, true}, Kind{"cpu", 2, 1, true},
                                         Kind{"cpu", 4, 2, true}, Kind{"null", 1, 1, false}, Kind{"null", 4, 2, false},
                                         Kind{"null", 4, 1, false}, Kind{"cuda", 1, 1, true, 1},
                                         Kind{"cuda", 4, 1, true, 1}, Kind{"cuda", 4, 1, true, 4},
                                         Kind{"cuda", 8, 1, true, 4}),
                         kindName);

} // namespace
} // namespace mtrun::test
