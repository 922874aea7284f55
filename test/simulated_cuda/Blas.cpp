// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt on the simulated driver: products of matrices, in bits that depend on the algorithm and on the size of the
// product, so that a caller who lets the number of rows in, or changes algorithms, is found out. Read from the
// environment:
//
//   MTC_SIM_BLAS_BATCH=1       bits depend on the number of shards too, which no check of an algorithm tells
#include "runtime/device/cuda/Blas.h"

#include "Library.h"

using namespace simulated;

#define MTC_SIM_DECLARE(member, symbol, type, parameters) extern "C" MT_API type symbol parameters;
MTRUN_BLAS_FUNCTIONS(MTC_SIM_DECLARE)

namespace mtrun::cuda {
struct BlasContextObject {
  int device = 0;
};
struct BlasLayoutObject {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct BlasProductObject {
  int compute = 0, scale = 0;
  int32_t transA = 0, transB = 0;
  uint32_t epilogue = blas::epilogueNone;
  const void *bias = nullptr;
};
struct BlasPreferenceObject {
  uint64_t workspace = 0;
  uint32_t reductions = 7, alignments[4] = {256, 256, 256, 256};
};
} // namespace mtrun::cuda

namespace {

constexpr int notInitialized = 1, invalidValue = 7, internalError = 14, notSupported = 15;

Handles<BlasContextObject> contexts{"cuBLASLt handle"};
Handles<BlasLayoutObject> layouts{"matrix layout"};
Handles<BlasProductObject> products{"product description"};
Handles<BlasPreferenceObject> preferences{"preference"};
Leftovers leftovers("simulated cuBLASLt", contexts, layouts, products, preferences);

// What an algorithm's words say.
enum Word { magic, number, splits, reduction, workspaceBytes, alignmentsOfAll, problem };
constexpr uint64_t magicNumber = 0x6d74626c6173;

struct Problem {
  uint64_t m, n, k;
};

// Sizes that fit each other, or the end of the process.
Problem problemOf(const BlasProductObject &product, const BlasLayoutObject &a, const BlasLayoutObject &b,
                  const BlasLayoutObject &c, const BlasLayoutObject &d) {
  Problem sizes = {d.rows, d.columns, product.transA ? a.rows : a.columns};
  if ((product.transA ? a.columns : a.rows) != sizes.m || (product.transB ? b.columns : b.rows) != sizes.k ||
      (product.transB ? b.rows : b.columns) != sizes.n || c.rows != d.rows || c.columns != d.columns)
    fatal("a product of matrices whose sizes do not fit");
  for (const auto *layout : {&a, &b, &c, &d})
    if (layout->leading < static_cast<int64_t>(layout->rows) || layout->type != 0 || layout->batch != d.batch)
      fatal("a product of matrices that overlap, or of different batches");
  if (product.scale != 0 || (product.compute != blas::computeF32 && product.compute != blas::computeTf32))
    fatal("a product in an arithmetic that is not simulated");
  return sizes;
}

// Of what an algorithm is chosen for, but for the batch.
uint64_t hashOf(const BlasProductObject &product, const Problem &sizes) {
  uint64_t hash = 1469598103934665603u;
  for (uint64_t word : {sizes.m, sizes.n, sizes.k, uint64_t(product.transA), uint64_t(product.transB),
                        uint64_t(product.epilogue), uint64_t(product.compute)})
    hash = (hash ^ word) * 1099511628211u;
  return hash;
}

// Whether an algorithm computes so many products at once, and what it needs for that.
bool takesBatch(const BlasAlgorithm &algorithm, int32_t batch) { return algorithm.data[number] != 2 || batch < 2; }
uint64_t workspaceOf(const BlasAlgorithm &algorithm, int32_t batch) {
  return algorithm.data[workspaceBytes] * (algorithm.data[number] == 3 ? static_cast<uint64_t>(batch) : 1);
}

} // namespace

size_t cublasLtGetVersion() { return 130002; }

const char *cublasLtGetStatusName(int status) {
  return status == internalError    ? "CUBLAS_STATUS_INTERNAL_ERROR"
         : status == notInitialized ? "CUBLAS_STATUS_NOT_INITIALIZED"
         : status == notSupported   ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                    : "CUBLAS_STATUS_INVALID_VALUE";
}

int cublasLtCreate(BlasHandle *handle) {
  int device = simulator().device("cublasLtCreate");
  if (simulator().fails("cublasLtCreate"))
    return notInitialized;
  *handle = contexts.make();
  (*handle)->device = device;
  return blas::success;
}

int cublasLtDestroy(BlasHandle handle) {
  bool fails = simulator().fails("cublasLtDestroy", true);
  contexts.free(handle);
  return fails ? internalError : blas::success;
}

int cublasLtMatmulDescCreate(BlasProduct *product, int compute, int scale) {
  if (simulator().fails("cublasLtMatmulDescCreate"))
    return internalError;
  *product = products.make();
  (*product)->compute = compute;
  (*product)->scale = scale;
  return blas::success;
}

int cublasLtMatmulDescDestroy(BlasProduct product) {
  products.free(product);
  return simulator().fails("cublasLtMatmulDescDestroy", true) ? internalError : blas::success;
}

int cublasLtMatmulDescSetAttribute(BlasProduct product, int attribute, const void *value, size_t bytes) {
  BlasProductObject &set = products.get(product);
  if (simulator().fails("cublasLtMatmulDescSetAttribute"))
    return internalError;
  void *place = attribute == blas::transposeA    ? static_cast<void *>(&set.transA)
                : attribute == blas::transposeB  ? static_cast<void *>(&set.transB)
                : attribute == blas::epilogue    ? static_cast<void *>(&set.epilogue)
                : attribute == blas::biasPointer ? static_cast<void *>(&set.bias)
                                                 : nullptr;
  if (!place || bytes != (attribute == blas::biasPointer ? sizeof(void *) : sizeof(int32_t)))
    fatal("cublasLtMatmulDescSetAttribute of attribute " + std::to_string(attribute));
  std::memcpy(place, value, bytes);
  return blas::success;
}

int cublasLtMatrixLayoutCreate(BlasLayout *layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  if (simulator().fails("cublasLtMatrixLayoutCreate"))
    return internalError;
  *layout = layouts.make();
  **layout = {type, rows, columns, leading, 1, 0};
  return blas::success;
}

int cublasLtMatrixLayoutDestroy(BlasLayout layout) {
  layouts.free(layout);
  return simulator().fails("cublasLtMatrixLayoutDestroy", true) ? internalError : blas::success;
}

int cublasLtMatrixLayoutSetAttribute(BlasLayout layout, int attribute, const void *value, size_t bytes) {
  BlasLayoutObject &set = layouts.get(layout);
  if (simulator().fails("cublasLtMatrixLayoutSetAttribute"))
    return internalError;
  if (attribute == blas::batchCount && bytes == sizeof set.batch)
    std::memcpy(&set.batch, value, bytes);
  else if (attribute == blas::batchStride && bytes == sizeof set.stride)
    std::memcpy(&set.stride, value, bytes);
  else
    fatal("cublasLtMatrixLayoutSetAttribute of attribute " + std::to_string(attribute));
  return blas::success;
}

int cublasLtMatmulPreferenceCreate(BlasPreference *preference) {
  if (simulator().fails("cublasLtMatmulPreferenceCreate"))
    return internalError;
  *preference = preferences.make();
  return blas::success;
}

int cublasLtMatmulPreferenceDestroy(BlasPreference preference) {
  preferences.free(preference);
  return simulator().fails("cublasLtMatmulPreferenceDestroy", true) ? internalError : blas::success;
}

int cublasLtMatmulPreferenceSetAttribute(BlasPreference preference, int attribute, const void *value, size_t bytes) {
  BlasPreferenceObject &set = preferences.get(preference);
  if (simulator().fails("cublasLtMatmulPreferenceSetAttribute"))
    return internalError;
  if (attribute == blas::maxWorkspace && bytes == sizeof set.workspace)
    std::memcpy(&set.workspace, value, bytes);
  else if (attribute == blas::reductionMask && bytes == sizeof set.reductions)
    std::memcpy(&set.reductions, value, bytes);
  else if (attribute >= blas::alignmentA && attribute <= blas::alignmentD && bytes == sizeof(uint32_t))
    std::memcpy(&set.alignments[attribute - blas::alignmentA], value, bytes);
  else
    fatal("cublasLtMatmulPreferenceSetAttribute of attribute " + std::to_string(attribute));
  return blas::success;
}

// The favourite splits k, whatever it was asked; one does not support the product; one refuses more than one product at
// once; one needs more workspace for more; two are good, the first without workspace.
int cublasLtMatmulAlgoGetHeuristic(BlasHandle handle, BlasProduct product, BlasLayout a, BlasLayout b, BlasLayout c,
                                   BlasLayout d, BlasPreference preference, int asked, BlasHeuristic *found,
                                   int *count) {
  contexts.get(handle);
  const BlasProductObject &described = products.get(product);
  const BlasPreferenceObject &preferred = preferences.get(preference);
  Problem sizes = problemOf(described, layouts.get(a), layouts.get(b), layouts.get(c), layouts.get(d));
  if (simulator().fails("cublasLtMatmulAlgoGetHeuristic"))
    return internalError;
  const uint32_t *aligned = preferred.alignments;
  *count = 0;
  for (uint64_t i = 0; i < 6 && *count < asked; ++i) {
    BlasHeuristic &result = found[(*count)++];
    result = {};
    uint64_t workspace = i == 3 || i == 5 ? 4096 : 0;
    result.algorithm.data[magic] = magicNumber;
    result.algorithm.data[number] = i;
    result.algorithm.data[splits] = i == 0 ? 4 : 1;
    result.algorithm.data[reduction] = i == 0 ? 2 : 0;
    result.algorithm.data[workspaceBytes] = workspace;
    result.algorithm.data[alignmentsOfAll] = aligned[0] | uint64_t{aligned[1]} << 16 | uint64_t{aligned[3]} << 32;
    result.algorithm.data[problem] = hashOf(described, sizes);
    result.workspace = workspace;
    result.state = i == 1 || workspace > preferred.workspace ? notSupported : blas::success;
  }
  return blas::success;
}

int cublasLtMatmulAlgoConfigGetAttribute(const BlasAlgorithm *algorithm, int attribute, void *value, size_t bytes,
                                         size_t *written) {
  if (simulator().fails("cublasLtMatmulAlgoConfigGetAttribute"))
    return internalError;
  if (algorithm->data[magic] != magicNumber ||
      (attribute != blas::algorithmSplits && attribute != blas::algorithmReduction) || bytes != sizeof(uint32_t))
    return invalidValue;
  auto number = static_cast<uint32_t>(algorithm->data[attribute == blas::algorithmSplits ? splits : reduction]);
  std::memcpy(value, &number, bytes);
  *written = bytes;
  return blas::success;
}

int cublasLtMatmulAlgoCheck(BlasHandle handle, BlasProduct product, BlasLayout a, BlasLayout b, BlasLayout c,
                            BlasLayout d, const BlasAlgorithm *algorithm, BlasHeuristic *result) {
  contexts.get(handle);
  const BlasProductObject &described = products.get(product);
  Problem sizes = problemOf(described, layouts.get(a), layouts.get(b), layouts.get(c), layouts.get(d));
  if (simulator().fails("cublasLtMatmulAlgoCheck"))
    return internalError;
  int32_t batch = layouts.get(d).batch;
  if (algorithm->data[magic] != magicNumber || algorithm->data[problem] != hashOf(described, sizes) ||
      !takesBatch(*algorithm, batch))
    return notSupported;
  result->algorithm = *algorithm;
  result->workspace = workspaceOf(*algorithm, batch);
  return blas::success;
}

int cublasLtMatmul(BlasHandle handle, BlasProduct product, const void *alpha, const void *a, BlasLayout aLayout,
                   const void *b, BlasLayout bLayout, const void *beta, const void *c, BlasLayout cLayout, void *d,
                   BlasLayout dLayout, const BlasAlgorithm *algorithm, void *workspace, size_t bytes, Stream stream) {
  Simulator &s = simulator();
  const char *call = "cublasLtMatmul";
  int device = contexts.get(handle).device;
  CUstream_st &launches = s.streams.get(stream);
  if (launches.device != device || s.device(call) != device)
    fatal("cublasLtMatmul on a stream of another device than its handle's or the current one");
  const BlasProductObject described = products.get(product);
  const auto left = layouts.get(aLayout), right = layouts.get(bLayout), to = layouts.get(dLayout);
  Problem sizes = problemOf(described, left, right, layouts.get(cLayout), to);
  if (algorithm->data[magic] != magicNumber || algorithm->data[problem] != hashOf(described, sizes) || c != d ||
      *static_cast<const float *>(alpha) != 1 || *static_cast<const float *>(beta) != 0)
    fatal("cublasLtMatmul with an algorithm of another product, or factors");
  if (algorithm->data[splits] != 1)
    fatal("cublasLtMatmul with an algorithm that splits k");
  auto matrix = [&](const void *place, const BlasLayoutObject &layout, int shift) {
    uint64_t alignment = algorithm->data[alignmentsOfAll] >> shift & 0xffff;
    if (layout.batch > 1 && static_cast<uint64_t>(layout.stride) * sizeof(float) % alignment)
      fatal("cublasLtMatmul of matrices that are not aligned");
    uint64_t elements = static_cast<uint64_t>(layout.batch - 1) * static_cast<uint64_t>(layout.stride) +
                        (layout.columns - 1) * static_cast<uint64_t>(layout.leading) + layout.rows;
    return onDevice<float>(place, elements, device, alignment, call);
  };
  const float *as = matrix(a, left, 0), *bs = matrix(b, right, 16);
  float *ds = matrix(d, to, 32);
  if (!takesBatch(*algorithm, to.batch))
    return notSupported;
  if (bytes < workspaceOf(*algorithm, to.batch))
    return invalidValue;
  std::byte *room = bytes ? onDevice<std::byte>(workspace, bytes, device, 256, call) : nullptr;
  const float *bias = described.epilogue & blas::epilogueBias
                          ? onDevice<float>(described.bias, sizes.m, device, sizeof(float), call)
                          : nullptr;
  if (s.fails(call))
    return internalError;
  const char *batches = std::getenv("MTC_SIM_BLAS_BATCH");
  uint64_t others = batches && *batches == '1' && to.batch > 1;
  unsigned chains = 1 + static_cast<unsigned>((algorithm->data[number] + sizes.n + sizes.k + others) % 7);
  enqueueCall(launches, [=] {
    if (room)
      std::memset(room, 0x5a, bytes);
    bool tf32 = described.compute == blas::computeTf32;
    for (int64_t batch = 0; batch < to.batch; ++batch)
      for (uint64_t column = 0; column < sizes.n; ++column)
        for (uint64_t row = 0; row < sizes.m; ++row) {
          ChainSum sum(chains);
          for (uint64_t k = 0; k < sizes.k; ++k) {
            auto element = [&](const float *from, const BlasLayoutObject &layout, uint64_t i, uint64_t j) {
              float value =
                  from[batch * layout.stride + static_cast<int64_t>(j) * layout.leading + static_cast<int64_t>(i)];
              return tf32 ? toTf32(value) : value;
            };
            sum.add(described.transA ? element(as, left, k, row) : element(as, left, row, k),
                    described.transB ? element(bs, right, column, k) : element(bs, right, k, column));
          }
          float value = sum.get() + (bias ? bias[row] : 0.f);
          if (described.epilogue & blas::epilogueRelu)
            value = value > 0 ? value : 0;
          ds[batch * to.stride + static_cast<int64_t>(column) * to.leading + static_cast<int64_t>(row)] = value;
        }
  });
  return blas::success;
}
