// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a tuning file, as they are and with a right hash at their end: the reader says no, or gives what is then
// compared with this card.
#include "runtime/device/cuda/Tuning.h"
#include "test/fuzz/Sealed.h"

using namespace mtrun;

static void parse(const std::string &text) {
  cuda::Tuning tuning;
  Status status = cuda::parseTuning(text, "fuzz", tuning);
  if (!status.ok() && (status.code() != MT_CORRUPT || status.message().size() < 7))
    __builtin_trap();
  cuda::TuningPlace here = tuning.place;
  if (status.ok() && !cuda::checkTuning("fuzz", tuning.place, here).ok())
    __builtin_trap();
  here.driver ^= 1;
  if (status.ok() && cuda::checkTuning("fuzz", tuning.place, here).ok())
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  parseSealed(data, size, parse);
  return 0;
}
