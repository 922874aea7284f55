// SPDX-License-Identifier: Apache-2.0
//
// Our declarations of NCCL's functions are those of nccl.h.
#include "runtime/device/cuda/Nccl.h"

#include <gtest/gtest.h>
#include <type_traits>

#if defined(MTC_CUDA_HEADER) && __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#define MTC_NCCL_HEADER
#endif

namespace mtrun::cuda {
namespace {

#ifdef MTC_NCCL_HEADER

// The type as we declare it: ints for enums, our own id.
template <typename T> struct PlainType {
  using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <> struct PlainType<ncclResult_t *> {
  using type = int *;
};
template <> struct PlainType<ncclUniqueId> {
  using type = NcclId;
};
template <> struct PlainType<ncclUniqueId *> {
  using type = NcclId *;
};
template <typename F> struct PlainFunction;
template <typename R, typename... A> struct PlainFunction<R(A...)> {
  using type = typename PlainType<R>::type(typename PlainType<A>::type...);
};

#define MTC_COMPARE(member, symbol, parameters)                                                                        \
  static_assert(std::is_same_v<PlainFunction<decltype(::symbol)>::type, NcclResult parameters>, #symbol);
MTRUN_NCCL_FUNCTIONS(MTC_COMPARE)
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

TEST(Nccl, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(ncclOk, ncclSuccess);
  EXPECT_EQ(ncclCudaError, ncclUnhandledCudaError);
  EXPECT_EQ(ncclWorking, ncclInProgress);
  EXPECT_EQ(ncclF32, ncclFloat32);
  EXPECT_EQ(ncclAdd, ncclSum);
  EXPECT_EQ(oldestNccl, NCCL_VERSION(2, 18, 0));
}

#else

TEST(Nccl, NumbersAreThoseOfTheHeader) { GTEST_SKIP() << "no nccl.h here"; }

#endif

} // namespace
} // namespace mtrun::cuda
