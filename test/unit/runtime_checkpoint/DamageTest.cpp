// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint with any bit flipped, or cut short anywhere, does not verify, and the message names the file.
#include "Sample.h"

#include <gtest/gtest.h>

using namespace fixtures;
using namespace mtrun;

namespace {

class Damage : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    ASSERT_EQ(text(Sample().write(folder.path())), "0");
    path = folder.path("step-000000000007/") + GetParam();
    whole = readFile(path);
  }
  // The message of reading with other bytes in the file.
  std::string problem(const std::string &bytes) {
    writeFile(path, bytes);
    Checkpoint read;
    return text(readCheckpoint(folder.path("step-000000000007"), read));
  }
  TempFolder folder;
  std::string path, whole;
};

} // namespace

TEST_P(Damage, EveryBit) {
  for (size_t byte = 0; byte < whole.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ 1 << bit);
      std::string message = problem(damaged);
      ASSERT_TRUE(message.starts_with("3: " + path)) << "byte " << byte << ", bit " << bit << ": " << message;
    }
  EXPECT_EQ(problem(whole), "0");
}

TEST_P(Damage, EveryLength) {
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string message = problem(whole.substr(0, size));
    ASSERT_TRUE(message.starts_with("3: " + path)) << size << " bytes: " << message;
  }
  EXPECT_TRUE(problem(whole + "\n").starts_with("3: " + path));
}

INSTANTIATE_TEST_SUITE_P(Files, Damage, testing::Values(manifestFile, variablesFile), [](const auto &info) {
  return std::string(info.param == manifestFile ? "Manifest" : "Variables");
});

TEST(DamageNames, TheTensor) {
  TempFolder folder;
  ASSERT_EQ(text(Sample().write(folder.path())), "0");
  std::string path = folder.path("step-000000000007/variables.safetensors"), bytes = readFile(path);
  bytes[bytes.size() - 3] ^= 4;
  writeFile(path, bytes);
  Checkpoint read;
  std::string message = text(readCheckpoint(folder.path("step-000000000007"), read));
  EXPECT_TRUE(message.starts_with("3: " + path + ": tensor \"dense/kernel\": expected hash ")) << message;
}

TEST(DamageNames, AManifestOfAnotherVersion) {
  // With a right hash, as a later version would write it.
  Manifest read;
  std::string manifest = writeManifest(Sample().manifest), version = "\"version\": 1";
  std::string body = manifest.substr(0, manifest.size() - 47);
  body.replace(body.find(version), version.size(), "\"version\": 2");
  std::string hash = hashText(hash128({reinterpret_cast<const uint8_t *>(body.data()), body.size()}));
  EXPECT_EQ(text(parseManifest(body + ",\n\"hash\": \"" + hash + "\"\n}\n", "m", read)),
            "3: m: expected a checkpoint of version 1, found version 2");
}
