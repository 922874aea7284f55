// SPDX-License-Identifier: Apache-2.0
//
// Our declarations of cuBLASLt and cuDNN are those of their headers.
#include "runtime/device/cuda/Blas.h"
#include "runtime/device/cuda/Dnn.h"
#include "runtime/device/cuda/DnnGraph.h"

#include <gtest/gtest.h>
#include <type_traits>

#ifdef MTC_LIBRARY_HEADERS
#include <cublasLt.h>
#include <cudnn_graph.h>
#endif

namespace mtrun::cuda {
namespace {

#ifdef MTC_LIBRARY_HEADERS

// The type with ints for enums, and one type for all pointers.
template <typename T> auto plainOf() {
  if constexpr (std::is_enum_v<T>)
    return std::type_identity<int>();
  else if constexpr (std::is_pointer_v<T>)
    return std::type_identity<void *>();
  else
    return std::type_identity<T>();
}
template <typename T> using Plain = typename decltype(plainOf<T>())::type;
template <typename F> struct PlainFunction;
template <typename R, typename... A> struct PlainFunction<R(A...)> {
  using type = Plain<R>(Plain<A>...);
};
template <typename F, typename G>
inline constexpr bool alike = std::is_same_v<typename PlainFunction<F>::type, typename PlainFunction<G>::type>;

#define MTC_COMPARE(member, symbol, type, parameters)                                                                  \
  static_assert(alike<decltype(::symbol), type parameters>, #symbol);
MTRUN_BLAS_FUNCTIONS(MTC_COMPARE)
MTRUN_DNN_FUNCTIONS(MTC_COMPARE)
static_assert(sizeof(BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(BlasHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(BlasHeuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(BlasHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

TEST(Libraries, NumbersOfCublasLtAreThoseOfTheHeader) {
  EXPECT_EQ(blas::computeF32, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(blas::computeTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(blas::typeF32, CUDA_R_32F);
  EXPECT_EQ(blas::transposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(blas::transposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_EQ(blas::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(blas::biasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(blas::batchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_EQ(blas::batchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  EXPECT_EQ(blas::maxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(blas::reductionMask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  EXPECT_EQ(blas::alignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  EXPECT_EQ(blas::alignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  EXPECT_EQ(blas::algorithmSplits, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  EXPECT_EQ(blas::algorithmReduction, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  EXPECT_EQ(blas::epilogueNone, CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(blas::epilogueRelu, CUBLASLT_EPILOGUE_RELU);
  EXPECT_EQ(blas::epilogueBias, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(blas::epilogueBiasRelu, CUBLASLT_EPILOGUE_RELU_BIAS);
}

TEST(Libraries, NumbersOfCudnnAreThoseOfTheHeader) {
  EXPECT_EQ(dnn::pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  EXPECT_EQ(dnn::convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  EXPECT_EQ(dnn::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_EQ(dnn::configuration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  EXPECT_EQ(dnn::heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  EXPECT_EQ(dnn::plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_EQ(dnn::knobChoice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  EXPECT_EQ(dnn::forward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_EQ(dnn::backwardFilter, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  EXPECT_EQ(dnn::backwardData, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  EXPECT_EQ(dnn::pointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  EXPECT_EQ(dnn::graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_EQ(dnn::variantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_EQ(dnn::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(dnn::characterType, CUDNN_TYPE_CHAR);
  EXPECT_EQ(dnn::bf16, CUDNN_DATA_BFLOAT16);
#if CUDNN_VERSION >= 90800
  EXPECT_EQ(dnn::gpuDescription, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  EXPECT_EQ(dnn::gpuJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  EXPECT_EQ(dnn::heuristicsGpu, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  EXPECT_EQ(dnn::engineGpu, CUDNN_ATTR_ENGINE_DEVICEPROP);
  EXPECT_EQ(dnn::planGpu, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
#endif
  EXPECT_EQ(dnn::handleType, CUDNN_TYPE_HANDLE);
  EXPECT_EQ(dnn::dataType, CUDNN_TYPE_DATA_TYPE);
  EXPECT_EQ(dnn::booleanType, CUDNN_TYPE_BOOLEAN);
  EXPECT_EQ(dnn::int64Type, CUDNN_TYPE_INT64);
  EXPECT_EQ(dnn::floatType, CUDNN_TYPE_FLOAT);
  EXPECT_EQ(dnn::pointerType, CUDNN_TYPE_VOID_PTR);
  EXPECT_EQ(dnn::convolutionModeType, CUDNN_TYPE_CONVOLUTION_MODE);
  EXPECT_EQ(dnn::heuristicsModeType, CUDNN_TYPE_HEUR_MODE);
  EXPECT_EQ(dnn::knobType, CUDNN_TYPE_KNOB_TYPE);
  EXPECT_EQ(dnn::noteType, CUDNN_TYPE_NUMERICAL_NOTE);
  EXPECT_EQ(dnn::pointwiseModeType, CUDNN_TYPE_POINTWISE_MODE);
  EXPECT_EQ(dnn::descriptorType, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  EXPECT_EQ(dnn::pointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  EXPECT_EQ(dnn::pointwiseMath, CUDNN_ATTR_POINTWISE_MATH_PREC);
  EXPECT_EQ(dnn::computeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  EXPECT_EQ(dnn::convolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
  EXPECT_EQ(dnn::dilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  EXPECT_EQ(dnn::filterStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  EXPECT_EQ(dnn::postPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  EXPECT_EQ(dnn::prePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  EXPECT_EQ(dnn::spatialDimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  EXPECT_EQ(dnn::heuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  EXPECT_EQ(dnn::heuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  EXPECT_EQ(dnn::heuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  EXPECT_EQ(dnn::configurationEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
  EXPECT_EQ(dnn::configurationKnobs, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
  EXPECT_EQ(dnn::planConfiguration, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  EXPECT_EQ(dnn::planWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  EXPECT_EQ(dnn::knobChoiceType, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
  EXPECT_EQ(dnn::knobChoiceValue, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  EXPECT_EQ(dnn::forwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
  EXPECT_EQ(dnn::forwardAlpha + 2, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  EXPECT_EQ(dnn::forwardW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  EXPECT_EQ(dnn::forwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  EXPECT_EQ(dnn::forwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  EXPECT_EQ(dnn::dataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
  EXPECT_EQ(dnn::dataAlpha + 2, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
  EXPECT_EQ(dnn::dataW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
  EXPECT_EQ(dnn::dataDx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
  EXPECT_EQ(dnn::dataDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
  EXPECT_EQ(dnn::filterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
  EXPECT_EQ(dnn::filterAlpha + 2, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  EXPECT_EQ(dnn::filterDw, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
  EXPECT_EQ(dnn::filterX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
  EXPECT_EQ(dnn::filterDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
  EXPECT_EQ(dnn::operationPointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  EXPECT_EQ(dnn::pointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  EXPECT_EQ(dnn::pointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  EXPECT_EQ(dnn::pointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  EXPECT_EQ(dnn::graphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  EXPECT_EQ(dnn::tensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  EXPECT_EQ(dnn::tensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  EXPECT_EQ(dnn::tensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
  EXPECT_EQ(dnn::tensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  EXPECT_EQ(dnn::tensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  EXPECT_EQ(dnn::tensorVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  EXPECT_EQ(dnn::packIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  EXPECT_EQ(dnn::packPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  EXPECT_EQ(dnn::packWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  EXPECT_EQ(dnn::engineGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  EXPECT_EQ(dnn::engineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  EXPECT_EQ(dnn::engineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  EXPECT_EQ(dnn::add, CUDNN_POINTWISE_ADD);
  EXPECT_EQ(dnn::relu, CUDNN_POINTWISE_RELU_FWD);
  EXPECT_EQ(dnn::crossCorrelation, CUDNN_CROSS_CORRELATION);
  EXPECT_EQ(dnn::f32, CUDNN_DATA_FLOAT);
  EXPECT_EQ(dnn::bestMode, CUDNN_HEUR_MODE_A);
  EXPECT_EQ(dnn::fallbackMode, CUDNN_HEUR_MODE_FALLBACK);
  EXPECT_EQ(dnn::noteTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  EXPECT_EQ(dnn::noteNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  EXPECT_EQ(dnn::noteStrictNan, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
}

#else

TEST(Libraries, NumbersAreThoseOfTheHeaders) { GTEST_SKIP() << "no cublasLt.h and cudnn_graph.h here"; }

#endif

TEST(Libraries, NamesOfEnginesAreReadAsWritten) {
  for (const char *name : {"engine 0", "engine 17, knobs 2:1", "engine 3, knobs 2:1 14:-5 0:9"}) {
    DnnAlgorithm algorithm;
    EXPECT_TRUE(DnnAlgorithm::parse(name, algorithm)) << name;
    EXPECT_EQ(algorithm.name(), name);
  }
  for (const char *name :
       {"", "engine", "engine x", "engine 1,", "engine 1, knobs 2", "engine 1, knobs 2:1,3:4", "own"}) {
    DnnAlgorithm algorithm;
    EXPECT_FALSE(DnnAlgorithm::parse(name, algorithm)) << name;
  }
}

} // namespace
} // namespace mtrun::cuda
