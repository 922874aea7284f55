// SPDX-License-Identifier: Apache-2.0
//
// Loops allocate before their first step and not after it: this program counts every operator new, on all threads.
#include "Fixtures.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

static std::atomic<int64_t> allocations{0};

void *operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void *memory = malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }

using namespace fixtures;

static int64_t afterFirst, last;

static int count(void *, const mtrun_progress *progress) {
  last = allocations.load();
  if (progress->epoch == 0 && progress->step == 1)
    afterFirst = last;
  return 0;
}

TEST(Allocation, NoneBetweenSteps) {
  TempFolder folder;
  writeSmallMnist(folder, std::string("\0\1\2\3\0\1\2", 7));
  Owned<mtrun_plan> plan = emptyPlan(2);
  Owned<mtrun_dataset> data = openData(plan.get(), "mnist:" + folder.path());
  for (const char *devices : {"null:1", "null:2"}) {
    Owned<mtrun_session> session = nullSession(plan.get(), devices);
    mtrun_trace_options trace = {sizeof(mtrun_trace_options), 1, 1000, 1, 0, 0};
    ASSERT_EQ(text(mtrun_trace_start(session.get(), &trace)), "0");
    mtrun_loop_options options = mtrun_loop_options_init();
    options.epochs = 20;
    options.progress = count;
    options.validation = data.get();
    ASSERT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
    EXPECT_EQ(last, afterFirst);
  }
}
