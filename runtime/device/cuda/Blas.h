// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt: matrix products. Declares the library's functions that are called; test/unit/runtime_cuda compares the
// declarations with cublasLt.h if it is installed.
#pragma once

#include "runtime/device/cuda/CallLibrary.h"

namespace mtrun::cuda {

// Values of the library's enumerations.
namespace blas {
inline constexpr int success = 0;
inline constexpr int computeF32 = 68, computeTf32 = 77, typeF32 = 0;                // cublasComputeType_t, cudaDataType
inline constexpr int transposeA = 3, transposeB = 4, epilogue = 7, biasPointer = 8; // cublasLtMatmulDescAttributes_t
inline constexpr int batchCount = 5, batchStride = 6;                               // cublasLtMatrixLayoutAttribute_t
inline constexpr int maxWorkspace = 1, reductionMask = 3, alignmentA = 5, alignmentB = 6, alignmentC = 7,
                     alignmentD = 8;                              // ...PreferenceAttributes_t
inline constexpr int algorithmSplits = 2, algorithmReduction = 3; // ...AlgoConfigAttributes_t
inline constexpr uint32_t epilogueNone = 1, epilogueRelu = 2, epilogueBias = 4, epilogueBiasRelu = 6;
} // namespace blas

// The library's opaque objects: a handle, the layout of a matrix, a product, and preferences for algorithms.
struct BlasContextObject;
struct BlasLayoutObject;
struct BlasProductObject;
struct BlasPreferenceObject;
using BlasHandle = BlasContextObject *;
using BlasLayout = BlasLayoutObject *;
using BlasProduct = BlasProductObject *;
using BlasPreference = BlasPreferenceObject *;
struct BlasAlgorithm {
  uint64_t data[8];
};
struct BlasHeuristic {
  BlasAlgorithm algorithm;
  size_t workspace;
  int state; // success: the other fields are valid
  float waves;
  int reserved[4];
};

// X(member, symbol in the library, type of the result, parameters)
#define MTRUN_BLAS_FUNCTIONS(X)                                                                                        \
  X(getVersion, cublasLtGetVersion, size_t, ())                                                                        \
  X(statusName, cublasLtGetStatusName, const char *, (int status))                                                     \
  X(create, cublasLtCreate, int, (BlasHandle * handle))                                                                \
  X(destroy, cublasLtDestroy, int, (BlasHandle handle))                                                                \
  X(productCreate, cublasLtMatmulDescCreate, int, (BlasProduct * product, int compute, int scale))                     \
  X(productDestroy, cublasLtMatmulDescDestroy, int, (BlasProduct product))                                             \
  X(productSet, cublasLtMatmulDescSetAttribute, int,                                                                   \
    (BlasProduct product, int attribute, const void *value, size_t bytes))                                             \
  X(layoutCreate, cublasLtMatrixLayoutCreate, int,                                                                     \
    (BlasLayout * layout, int type, uint64_t rows, uint64_t columns, int64_t stride))                                  \
  X(layoutDestroy, cublasLtMatrixLayoutDestroy, int, (BlasLayout layout))                                              \
  X(layoutSet, cublasLtMatrixLayoutSetAttribute, int,                                                                  \
    (BlasLayout layout, int attribute, const void *value, size_t bytes))                                               \
  X(preferenceCreate, cublasLtMatmulPreferenceCreate, int, (BlasPreference * preference))                              \
  X(preferenceDestroy, cublasLtMatmulPreferenceDestroy, int, (BlasPreference preference))                              \
  X(preferenceSet, cublasLtMatmulPreferenceSetAttribute, int,                                                          \
    (BlasPreference preference, int attribute, const void *value, size_t bytes))                                       \
  X(heuristics, cublasLtMatmulAlgoGetHeuristic, int,                                                                   \
    (BlasHandle handle, BlasProduct product, BlasLayout a, BlasLayout b, BlasLayout c, BlasLayout d,                   \
     BlasPreference preference, int asked, BlasHeuristic *found, int *count))                                          \
  X(algorithmGet, cublasLtMatmulAlgoConfigGetAttribute, int,                                                           \
    (const BlasAlgorithm *algorithm, int attribute, void *value, size_t bytes, size_t *written))                       \
  X(check, cublasLtMatmulAlgoCheck, int,                                                                               \
    (BlasHandle handle, BlasProduct product, BlasLayout a, BlasLayout b, BlasLayout c, BlasLayout d,                   \
     const BlasAlgorithm *algorithm, BlasHeuristic *result))                                                           \
  X(multiply, cublasLtMatmul, int,                                                                                     \
    (BlasHandle handle, BlasProduct product, const void *alpha, const void *a, BlasLayout aLayout, const void *b,      \
     BlasLayout bLayout, const void *beta, const void *c, BlasLayout cLayout, void *d, BlasLayout dLayout,             \
     const BlasAlgorithm *algorithm, void *workspace, size_t bytes, Stream stream))

struct BlasFunctions {
#define MTRUN_BLAS_MEMBER(member, symbol, type, parameters) type(*member) parameters = nullptr;
  MTRUN_BLAS_FUNCTIONS(MTRUN_BLAS_MEMBER)
#undef MTRUN_BLAS_MEMBER
};

// Opens libcublasLt.so.13 or .12, or the file in $MTRUN_CUDA_CUBLASLT, once per process, and creates a handle on the
// GPU of the current context. MT_DEVICE.
Status openBlas(int driverVersion, std::unique_ptr<CallLibrary> &library);

} // namespace mtrun::cuda
