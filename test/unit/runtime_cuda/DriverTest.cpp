// SPDX-License-Identifier: Apache-2.0
//
// Our declarations of the CUDA driver's functions are those of cuda.h.
#include "runtime/device/cuda/Driver.h"

#include <gtest/gtest.h>
#include <type_traits>

#ifdef MTC_CUDA_HEADER
#include <cuda.h>
#endif

namespace mtrun::cuda {
namespace {

#ifdef MTC_CUDA_HEADER

// The type with ints for enums, as we declare them.
template <typename T> auto plainOf() {
  if constexpr (std::is_enum_v<T>)
    return std::type_identity<int>();
  else if constexpr (std::is_pointer_v<T> && std::is_enum_v<std::remove_pointer_t<T>>)
    return std::type_identity<int *>();
  else
    return std::type_identity<T>();
}
template <typename T> using Plain = typename decltype(plainOf<T>())::type;
template <typename F> struct PlainFunction;
template <typename R, typename... A> struct PlainFunction<R(A...)> {
  using type = Plain<R>(Plain<A>...);
};

#define MTC_COMPARE(member, symbol, parameters)                                                                        \
  static_assert(std::is_same_v<PlainFunction<decltype(::symbol)>::type, Result parameters>, #symbol);
MTRUN_CUDA_FUNCTIONS(MTC_COMPARE)

TEST(Driver, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(success, CUDA_SUCCESS);
  EXPECT_EQ(outOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(noDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(invalidImage, CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(noBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(invalidPtx, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(unsupportedPtx, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(functionNotFound, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(capabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(capabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(jitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(jitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  EXPECT_EQ(streamNonBlocking, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(eventDisableTiming, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(hostPortable, static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE));
  EXPECT_EQ(eventRecordExternal, static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL));
  EXPECT_EQ(clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  EXPECT_EQ(multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(memoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  EXPECT_EQ(memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  EXPECT_EQ(threadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  EXPECT_EQ(stackLimit, CU_LIMIT_STACK_SIZE);
  EXPECT_EQ(captureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

#else

TEST(Driver, NumbersAreThoseOfTheHeader) { GTEST_SKIP() << "no cuda.h here"; }

#endif

} // namespace
} // namespace mtrun::cuda
