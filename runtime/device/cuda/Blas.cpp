// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Blas.h"

#include "runtime/device/Library.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <dlfcn.h>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

Status open(int driverVersion, BlasFunctions &functions) {
  void *library = nullptr;
  std::string place;
  if (Status status = openCallLibrary(
          cublasLtLibrary(driverVersion),
          "libcublas-13-0 or nvidia-cublas, for CUDA 12 libcublas-12-9 or nvidia-cublas-cu12", library, place);
      !status.ok())
    return status;
#define MTRUN_BLAS_FIND(member, symbol, type, parameters)                                                              \
  functions.member = reinterpret_cast<decltype(functions.member)>(dlsym(library, #symbol));                            \
  if (!functions.member)                                                                                               \
    return {MT_DEVICE, "expected cuBLASLt 12 or 13, found " + place + " without " #symbol};
  MTRUN_BLAS_FUNCTIONS(MTRUN_BLAS_FIND)
#undef MTRUN_BLAS_FIND
  return {};
}

// A matrix of a product in the library's column-major order: MTC's matrices are transposed.
struct Matrix {
  uint64_t rows, columns, stride; // elements between columns
  uint64_t batch;                 // elements between shards; 0: all shards share the matrix
};

// result^T = a . b, where a is MTC's right operand and b its left operand.
struct Matrices {
  Matrix a, b, d;
  bool transA, transB;
};

Matrices matricesOf(const fb::LibraryCall &call, int64_t shardRows) {
  uint64_t lines = call.lines() * static_cast<uint64_t>(shardRows), depth = call.depth(), columns = call.columns();
  if (isTree(call))
    return {{columns, lines, columns, lines * columns},
            {depth, lines, depth, lines * depth},
            {columns, depth, columns, depth * columns},
            false,
            true};
  Matrix right = call.transposed() ? Matrix{depth, columns, depth, 0} : Matrix{columns, depth, columns, 0};
  return {right,
          {depth, lines, depth, lines * depth},
          {columns, lines, columns, lines * columns},
          call.transposed(),
          false};
}

// Returns the alignment of every shard's first element; base addresses are multiples of 64.
uint32_t alignmentOf(const Matrix &matrix) {
  uint64_t bytes = (matrix.batch | 64) * sizeof(float);
  return static_cast<uint32_t>(std::min<uint64_t>(bytes & -bytes, 64));
}

std::string nameOf(const BlasAlgorithm &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

bool parse(const std::string &name, BlasAlgorithm &algorithm) {
  if (name.size() != 16 * std::size(algorithm.data))
    return false;
  for (size_t i = 0; i < std::size(algorithm.data); ++i) {
    const char *begin = name.data() + 16 * i;
    auto [end, error] = std::from_chars(begin, begin + 16, algorithm.data[i], 16);
    if (error != std::errc() || end != begin + 16)
      return false;
  }
  return true;
}

class Blas : public CallLibrary {
public:
  explicit Blas(const BlasFunctions &functions) : functions_(functions) {}
  ~Blas() override {
    if (handle_)
      (void)functions_.destroy(handle_);
  }
  Status start() { return good(functions_.create(&handle_), "cuBLASLt does not start"); }

  std::string version() const override {
    size_t number = functions_.getVersion();
    return "cuBLASLt " + std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
           std::to_string(number % 100);
  }

  // Asks the heuristics for a single shard, so that the proposals do not depend on the number of shards.
  Status algorithms(const fb::LibraryCall &call, int64_t shardRows, const Wanted &wanted,
                    std::vector<Algorithm> &found) override {
    constexpr int asked = 16;
    BlasHeuristic results[asked];
    int count = 0;
    Description description(*this);
    Status status = description.make(call, shardRows, 1);
    if (status.ok())
      status = description.prefer(wanted.workspace);
    if (!status.ok())
      return status;
    int code = functions_.heuristics(handle_, description.product, description.a, description.b, description.d,
                                     description.d, description.preference, asked, results, &count);
    if (code == notSupported)
      return {};
    if (status = good(code, "cuBLASLt finds no algorithm"); !status.ok())
      return status;
    for (int i = 0; i < count && found.size() < wanted.most; ++i) {
      BlasHeuristic &result = results[i];
      if (result.state != blas::success || result.workspace > wanted.workspace || !isDeterministic(result.algorithm))
        continue;
      bool computes = false;
      size_t workspace = result.workspace;
      if (status = check(call, shardRows, wanted.shards, result.algorithm, workspace, computes); !status.ok())
        return status;
      if (computes && workspace <= wanted.workspace)
        found.push_back({nameOf(result.algorithm), std::max(workspace, result.workspace)});
    }
    return {};
  }

  Status find(const fb::LibraryCall &call, int64_t shardRows, int64_t shards, Algorithm &algorithm) override {
    BlasAlgorithm parsed;
    size_t workspace = 0;
    bool computes = parse(algorithm.name, parsed) && isDeterministic(parsed);
    if (computes)
      if (Status status = check(call, shardRows, shards, parsed, workspace, computes); !status.ok())
        return status;
    if (!computes)
      return {MT_INVALID, "expected an algorithm of " + version() + " for this product, found " + algorithm.name};
    algorithm.workspace = workspace;
    return {};
  }

  Status enqueue(const fb::LibraryCall &call, int64_t shardRows, const Algorithm &algorithm, const CallPlaces &places,
                 int64_t shards, Stream stream) override {
    BlasAlgorithm parsed;
    Description description(*this);
    Status status = description.make(call, shardRows, shards);
    if (status.ok() && places.bias)
      status = good(functions_.productSet(description.product, blas::biasPointer, &places.bias, sizeof places.bias),
                    "cannot describe a product to cuBLASLt");
    if (!status.ok())
      return status;
    if (!parse(algorithm.name, parsed))
      return {MT_INVALID, "expected an algorithm of cuBLASLt, found " + algorithm.name};
    float one = 1, zero = 0;
    return good(functions_.multiply(handle_, description.product, &one, places.right, description.a, places.left,
                                    description.b, &zero, places.result, description.d, places.result, description.d,
                                    &parsed, places.workspace, algorithm.workspace, stream),
                "cuBLASLt does not compute a product");
  }

private:
  static constexpr int notSupported = 15;

  Status good(int code, const std::string &what) const {
    if (code == blas::success)
      return {};
    const char *name = functions_.statusName(code);
    constexpr int outOfMemory = 3;
    return {code == outOfMemory ? MT_NO_MEMORY : MT_DEVICE, what + ": " + (name ? name : std::to_string(code))};
  }

  // Checks that the algorithm computes 1, 2, 4 ... `shards` shards at once with the same workspace size. An algorithm
  // with another workspace size would compute in another way.
  Status check(const fb::LibraryCall &call, int64_t shardRows, int64_t shards, const BlasAlgorithm &algorithm,
               size_t &workspace, bool &computes) const {
    computes = true;
    for (int64_t count = 1; count <= shards && computes; count *= 2) {
      BlasHeuristic result = {};
      Description description(*this);
      if (Status status = description.make(call, shardRows, count); !status.ok())
        return status;
      int code = functions_.check(handle_, description.product, description.a, description.b, description.d,
                                  description.d, &algorithm, &result);
      computes = code == blas::success && (count == 1 || result.workspace == workspace);
      workspace = result.workspace;
    }
    return {};
  }

  // Returns true if the algorithm does not split the summed axis: the library may add partial sums in any order.
  bool isDeterministic(const BlasAlgorithm &algorithm) const {
    int32_t splits = 0;
    uint32_t reduction = 0;
    size_t written = 0;
    return functions_.algorithmGet(&algorithm, blas::algorithmSplits, &splits, sizeof splits, &written) ==
               blas::success &&
           functions_.algorithmGet(&algorithm, blas::algorithmReduction, &reduction, sizeof reduction, &written) ==
               blas::success &&
           splits <= 1 && reduction == 0;
  }

  // The library's objects that describe a product of a number of shards.
  struct Description {
    explicit Description(const Blas &library) : library(library) {}
    ~Description() {
      const BlasFunctions &call = library.functions_;
      for (BlasLayout layout : {a, b, d})
        if (layout)
          (void)call.layoutDestroy(layout);
      if (product)
        (void)call.productDestroy(product);
      if (preference)
        (void)call.preferenceDestroy(preference);
    }

    Status make(const fb::LibraryCall &call, int64_t shardRows, int64_t shards) {
      const BlasFunctions &to = library.functions_;
      matrices = matricesOf(call, shardRows);
      static constexpr uint32_t epilogues[] = {blas::epilogueNone, blas::epilogueRelu, blas::epilogueBias,
                                               blas::epilogueBiasRelu};
      uint32_t epilogue = epilogues[static_cast<size_t>(call.epilogue())];
      int32_t transA = matrices.transA, transB = matrices.transB;
      int compute = call.math() == fb::CallMath::TF32 ? blas::computeTf32 : blas::computeF32;
      int code = to.productCreate(&product, compute, blas::typeF32);
      auto set = [&](int attribute, const void *value) {
        if (code == blas::success)
          code = to.productSet(product, attribute, value, sizeof(int32_t));
      };
      set(blas::transposeA, &transA);
      set(blas::transposeB, &transB);
      set(blas::epilogue, &epilogue);
      for (auto [layout, matrix] : {std::pair{&a, &matrices.a}, {&b, &matrices.b}, {&d, &matrices.d}}) {
        auto count = static_cast<int32_t>(shards);
        auto stride = static_cast<int64_t>(matrix->batch);
        if (code == blas::success)
          code = to.layoutCreate(layout, blas::typeF32, matrix->rows, matrix->columns,
                                 static_cast<int64_t>(matrix->stride));
        if (code == blas::success)
          code = to.layoutSet(*layout, blas::batchCount, &count, sizeof count);
        if (code == blas::success)
          code = to.layoutSet(*layout, blas::batchStride, &stride, sizeof stride);
      }
      return library.good(code, "cannot describe a product to cuBLASLt");
    }

    Status prefer(uint64_t workspace) {
      const BlasFunctions &to = library.functions_;
      uint32_t noReduction = 0, alignments[] = {alignmentOf(matrices.a), alignmentOf(matrices.b),
                                                alignmentOf(matrices.d), alignmentOf(matrices.d)};
      int code = to.preferenceCreate(&preference);
      auto set = [&](int attribute, const void *value, size_t bytes) {
        if (code == blas::success)
          code = to.preferenceSet(preference, attribute, value, bytes);
      };
      set(blas::maxWorkspace, &workspace, sizeof workspace);
      set(blas::reductionMask, &noReduction, sizeof noReduction);
      for (int i = 0; i < 4; ++i)
        set(blas::alignmentA + i, &alignments[i], sizeof(uint32_t));
      return library.good(code, "cannot describe a product to cuBLASLt");
    }

    const Blas &library;
    Matrices matrices = {};
    BlasProduct product = nullptr;
    BlasLayout a = nullptr, b = nullptr, d = nullptr;
    BlasPreference preference = nullptr;
  };

  const BlasFunctions &functions_;
  BlasHandle handle_ = nullptr;
};

} // namespace

Status openBlas(int driverVersion, std::unique_ptr<CallLibrary> &library) {
  struct Opened {
    BlasFunctions functions;
    Status status;
    explicit Opened(int driverVersion) { status = open(driverVersion, functions); }
  };
  static const Opened opened(driverVersion);
  if (!opened.status.ok())
    return opened.status;
  auto started = std::make_unique<Blas>(opened.functions);
  Status status = started->start();
  library = std::move(started);
  return status;
}

Status openCallLibrary(const NvidiaLibrary &named, const char *packages, void *&library, std::string &place) {
  std::string reasons, wanted;
  std::vector<std::string> places = placesNamed(named.variable, named.names);
  library = openFirst(places, place, reasons);
  if (library)
    return {};
  for (const std::string &name : places)
    wanted += (wanted.empty() ? "" : " or ") + name;
  return {MT_DEVICE, "expected " + wanted + " (package " + packages + "), found none: " + reasons};
}

} // namespace mtrun::cuda
