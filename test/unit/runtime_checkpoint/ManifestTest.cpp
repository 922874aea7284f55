// SPDX-License-Identifier: Apache-2.0
//
// Manifests that end with their own hash and hold what no run wrote: a position past the epoch's end hung the run that
// resumed it, a larger one ended it with a signal.
#include "Sample.h"

#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

// What the sample's manifest says, with `from` replaced by `to` and a right hash.
std::string problem(const std::string &from, const std::string &to) {
  Sample sample;
  sample.manifest.state.stepsPerEpoch = 5;
  sample.manifest.state.position = 2;
  sample.manifest.tensors = {{"w", MT_F32, {2, 3}, {}}};
  std::string text = writeManifest(sample.manifest);
  text.resize(text.size() - sealBytes);
  EXPECT_NE(text.find(from), std::string::npos) << from;
  text.replace(text.find(from), from.size(), to);
  text += "\n}";
  seal(text);
  Manifest read;
  return fixtures::text(parseManifest(text, "m", read));
}

struct Case {
  const char *from, *to, *message;
};

} // namespace

TEST(Manifest, IsTakenAsItIs) { EXPECT_EQ(problem("\"position\": 2", "\"position\": 5"), "0"); }

TEST(Manifest, NoNumberThatNoRunComesTo) {
  for (const Case &each : std::vector<Case>{
           {"\"position\": 2", "\"position\": 6", "expected position of at most 5, the steps of an epoch, found 6"},
           {"\"position\": 2", "\"position\": 9223372036854775807",
            "expected position of 0 to 9007199254740992, found 9223372036854775807"},
           {"\"position\": 2", "\"position\": -1", "expected position of 0 to 9007199254740992, found -1"},
           {"\"position\": 2", "\"position\": 2.5", "expected a whole number of 64 bits as position, found 2.5"},
           {"\"position\": 2", "\"position\": 1e300", "expected a whole number of 64 bits as position, found 1e+300"},
           {"\"position\": 2", "\"position\": true", "expected a whole number of 64 bits as position, found true"},
           {"\"epoch\": 1", "\"epoch\": 9223372036854775806",
            "expected epoch of 0 to 9007199254740992, found 9223372036854775806"},
           {"\"step\": 7", "\"step\": 1", "expected position of at most 1, the steps since the beginning, found 2"},
           {"\"seed\": 42", "\"seed\": 18446744073709551615",
            "expected a whole number of 64 bits as seed, found 18446744073709551615"},
           {"\"steps_per_epoch\": 5", "\"steps_per_epoch\": -5",
            "expected steps_per_epoch of 0 to 9223372036854775807, found -5"},
           {"\"epoch\": 1", "\"epoch\": 0", "expected rows of the history of at most 0, the complete epochs, found 1"},
           {"\"samples\": 0", "\"samples\": -1", "expected samples of 0 to 9223372036854775807, found -1"},
           {"     2,\n", "     2e400,\n", ""},
           {"     2,\n", "     2.5,\n", "expected a whole number of 64 bits as a dimension, found 2.5"},
           {"\"bytes\": 0", "\"bytes\": -1", "expected bytes of 0 to 9223372036854775807, found -1"}}) {
    std::string found = problem(each.from, each.to);
    EXPECT_TRUE(found.starts_with("3: m: ")) << each.to << ": " << found;
    EXPECT_NE(found.find(each.message), std::string::npos) << each.to << ": " << found;
  }
  // Epochs and steps whose product does not fit.
  std::string found = problem("\"epoch\": 1,", "\"epoch\": 4611686018427387904,");
  EXPECT_TRUE(found.starts_with("3: m: ")) << found;
}
