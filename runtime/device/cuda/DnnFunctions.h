// SPDX-License-Identifier: Apache-2.0
//
// Declares the functions and constants of cuDNN 9's graph API that are used; test/unit/runtime_cuda compares them with
// cudnn_graph.h if it is installed.
#pragma once

#include "runtime/device/cuda/Driver.h"

namespace mtrun::cuda {

// Values of the library's enumerations.
namespace dnn {
inline constexpr int success = 0;
// cudnnBackendDescriptorType_t
inline constexpr int pointwise = 0, convolution = 1, engine = 2, configuration = 3, heuristics = 4, plan = 5,
                     knobChoice = 7, forward = 10, backwardFilter = 11, backwardData = 12, pointwiseOperation = 13,
                     graph = 15, variantPack = 16, tensor = 17, gpuDescription = 38;
// cudnnBackendAttributeType_t
inline constexpr int handleType = 0, dataType = 1, booleanType = 2, int64Type = 3, floatType = 4, doubleType = 5,
                     pointerType = 6, convolutionModeType = 7, heuristicsModeType = 8, knobType = 9, noteType = 11,
                     pointwiseModeType = 14, descriptorType = 15, characterType = 24;
// cudnnBackendAttributeName_t
inline constexpr int pointwiseMode = 0, pointwiseMath = 1;
inline constexpr int computeType = 100, convolutionMode = 101, dilations = 102, filterStrides = 103, postPaddings = 104,
                     prePaddings = 105, spatialDimensions = 106;
inline constexpr int heuristicsMode = 200, heuristicsGraph = 201, heuristicsResults = 202, heuristicsGpu = 204;
inline constexpr int configurationEngine = 300, configurationKnobs = 302;
inline constexpr int planHandle = 400, planConfiguration = 401, planWorkspace = 402, planGpu = 407;
inline constexpr int knobChoiceType = 600, knobChoiceValue = 601;
// Attributes of the three convolutions: alpha, beta, descriptor and then the tensors, with consecutive numbers.
inline constexpr int forwardAlpha = 700, forwardW = 703, forwardX = 704, forwardY = 705;
inline constexpr int dataAlpha = 706, dataW = 709, dataDx = 710, dataDy = 711;
inline constexpr int filterAlpha = 712, filterDw = 715, filterX = 716, filterDy = 717;
inline constexpr int operationPointwise = 750, pointwiseX = 751, pointwiseB = 752, pointwiseY = 753;
inline constexpr int graphHandle = 800, graphOperations = 801;
inline constexpr int tensorAlignment = 900, tensorType = 901, tensorDimensions = 902, tensorStrides = 903,
                     tensorId = 906, tensorVirtual = 907;
inline constexpr int packIds = 1000, packPointers = 1001, packWorkspace = 1003;
inline constexpr int engineGraph = 1300, engineIndex = 1301, engineNotes = 1303, engineGpu = 1307;
inline constexpr int gpuJson = 2702;
// cudnnPointwiseMode_t, cudnnConvolutionMode_t, cudnnDataType_t, cudnnBackendHeurMode_t, cudnnBackendNumericalNote_t
inline constexpr int add = 0, relu = 100, crossCorrelation = 1, f32 = 0, bf16 = 9, bestMode = 3, fallbackMode = 2;
inline constexpr int noteTensorCore = 0, noteNondeterministic = 4, noteStrictNan = 9;
} // namespace dnn

struct DnnContextObject; // the library's opaque object
using DnnHandle = DnnContextObject *;
using DnnDescriptor = void *;

// X(member, symbol in the library, type of the result, parameters)
#define MTRUN_DNN_FUNCTIONS(X)                                                                                         \
  X(getVersion, cudnnGetVersion, size_t, ())                                                                           \
  X(errorString, cudnnGetErrorString, const char *, (int status))                                                      \
  X(create, cudnnCreate, int, (DnnHandle * handle))                                                                    \
  X(destroy, cudnnDestroy, int, (DnnHandle handle))                                                                    \
  X(setStream, cudnnSetStream, int, (DnnHandle handle, Stream stream))                                                 \
  X(createDescriptor, cudnnBackendCreateDescriptor, int, (int type, DnnDescriptor *descriptor))                        \
  X(destroyDescriptor, cudnnBackendDestroyDescriptor, int, (DnnDescriptor descriptor))                                 \
  X(set, cudnnBackendSetAttribute, int,                                                                                \
    (DnnDescriptor descriptor, int attribute, int type, int64_t count, const void *values))                            \
  X(get, cudnnBackendGetAttribute, int,                                                                                \
    (DnnDescriptor descriptor, int attribute, int type, int64_t asked, int64_t *count, void *values))                  \
  X(finalize, cudnnBackendFinalize, int, (DnnDescriptor descriptor))                                                   \
  X(execute, cudnnBackendExecute, int, (DnnHandle handle, DnnDescriptor plan, DnnDescriptor pack))

struct DnnFunctions {
#define MTRUN_DNN_MEMBER(member, symbol, type, parameters) type(*member) parameters = nullptr;
  MTRUN_DNN_FUNCTIONS(MTRUN_DNN_MEMBER)
#undef MTRUN_DNN_MEMBER
};

} // namespace mtrun::cuda
