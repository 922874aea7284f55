// SPDX-License-Identifier: Apache-2.0
//
// Memory that runs out while a checkpoint is written is an exception or a status, never the end of the process: in this
// program an operator new may fail.
#include "Sample.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

static thread_local int64_t allocationsLeft = INT64_MAX;

void *operator new(size_t size) {
  if (allocationsLeft-- > 0)
    if (void *memory = malloc(size ? size : 1))
      return memory;
  throw std::bad_alloc();
}
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return allocationsLeft-- > 0 ? malloc(size ? size : 1) : nullptr;
}
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { free(memory); }

using namespace fixtures;
using namespace mtrun;

TEST(Memory, AManifestThatFindsNoneThrows) {
  Sample sample;
  sample.manifest.monitor = "val_loss";
  sample.manifest.monitored = 0.5;
  sample.manifest.tensors = {{"a name that does not lie in the string", MT_F32, {2, 3}, {}}};
  std::string whole = writeManifest(sample.manifest), text;
  int64_t failures = 0;
  for (; text.empty(); ++failures) {
    allocationsLeft = failures;
    try {
      text = writeManifest(sample.manifest);
    } catch (const std::bad_alloc &) {
    }
    allocationsLeft = INT64_MAX;
  }
  EXPECT_GT(failures, 20);
  EXPECT_EQ(text, whole);
}

TEST(Memory, AStatusThatFindsNoneIsOne) {
  Status failed(MT_IO, "a message that does not lie in the string");
  allocationsLeft = 0;
  mt_status *status = std::move(failed).release();
  allocationsLeft = INT64_MAX;
  EXPECT_EQ(mt_status_code(status), MT_NO_MEMORY);
  EXPECT_STREQ(mt_status_message(status), "out of memory");
  mt_status_free(status);
  mt_status_free(status); // it is nobody's
}
