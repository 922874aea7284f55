// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Tuning.h"

#include "runtime/support/atomic_file.h"
#include "runtime/support/hash_text.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace mtrun::cuda {

using Json = nlohmann::json; // members are sorted by name

namespace {

constexpr int64_t version = 1;
constexpr size_t maxBytes = size_t{1} << 26;

Status readAll(const std::string &path, std::string &bytes) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return ioError("cannot open", path, errno);
  char block[4096];
  size_t count = 0;
  while (bytes.size() <= maxBytes && (count = std::fread(block, 1, sizeof block, file)) > 0)
    bytes.append(block, count);
  int error = std::ferror(file) ? errno : 0;
  std::fclose(file);
  if (error)
    return ioError("cannot read", path, error);
  if (bytes.size() > maxBytes)
    return {MT_CORRUPT, path + ": expected a tuning file of at most 64 MiB, found a larger one"};
  return {};
}

std::string joined(const std::vector<std::string> &names) {
  std::string all;
  for (const std::string &name : names)
    all += (all.empty() ? "" : ", ") + name;
  return all.empty() ? "none" : all;
}

} // namespace

Status writeTuning(const std::string &path, Tuning &tuning) {
  Json kernels = Json::array();
  for (const TunedKernel &kernel : tuning.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"algorithm", kernel.algorithm},
                       {"us", kernel.microseconds},
                       {"own_us", kernel.ownMicroseconds}});
  Json json = {{"format", "mtrun tuning"},
               {"version", version},
               {"gpu", tuning.place.gpu},
               {"capability", tuning.place.capability},
               {"driver", tuning.place.driver},
               {"libraries", tuning.place.libraries},
               {"plan", hashText(tuning.place.plan)},
               {"kernels", kernels}};
  std::string bytes = json.dump(1, ' ', false, Json::error_handler_t::replace);
  tuning.hash = seal(bytes);
  AtomicFile file;
  Status status = file.open(path);
  if (status.ok())
    status = file.write(bytes.data(), bytes.size());
  return status.ok() ? file.commit() : status;
}

Status readTuning(const std::string &path, Tuning &tuning) {
  std::string bytes;
  if (Status status = readAll(path, bytes); !status.ok())
    return status;
  return parseTuning(bytes, path, tuning);
}

// The JSON library would round a float, which might not fit into an integer, and wrap a number that is too large.
static int integer(const Json &json) {
  bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= INT_MAX
                                        : json.is_number_integer() && json.get<int64_t>() >= INT_MIN;
  if (!fits)
    throw std::runtime_error("expected a whole number of 32 bits, found " + json.dump());
  return static_cast<int>(json.get<int64_t>());
}

Status parseTuning(const std::string &bytes, const std::string &path, Tuning &tuning) {
  tuning = {};
  if (!isSealed(bytes, tuning.hash))
    return {MT_CORRUPT, path + ": expected a tuning file that ends with its own hash, found " +
                            std::to_string(bytes.size()) + " bytes that end with other text"};
  try {
    Json json = Json::parse(bytes);
    if (int found = integer(json.at("version")); json.at("format") != "mtrun tuning" || found != version)
      return {MT_CORRUPT, path + ": expected a tuning file of version " + std::to_string(version) + ", found version " +
                              std::to_string(found)};
    tuning.place.gpu = json.at("gpu").get<std::string>();
    tuning.place.capability = json.at("capability").get<std::string>();
    tuning.place.driver = integer(json.at("driver"));
    tuning.place.libraries = json.at("libraries").get<std::vector<std::string>>();
    tuning.place.plan = hashOfText(json.at("plan").get<std::string>());
    for (const Json &kernel : json.at("kernels"))
      tuning.kernels.push_back({kernel.at("name").get<std::string>(), kernel.at("algorithm").get<std::string>(),
                                kernel.at("us").get<double>(), kernel.at("own_us").get<double>()});
  } catch (const std::exception &error) { // from the parser, from number conversions, or thrown above
    return {MT_CORRUPT, path + ": " + error.what()};
  }
  return {};
}

Status checkTuning(const std::string &path, const TuningPlace &made, const TuningPlace &here) {
  struct {
    const char *what;
    std::string made, here;
  } facts[] = {{"the plan", hashText(made.plan), hashText(here.plan)},
               {"the GPU", made.gpu + " of " + made.capability, here.gpu + " of " + here.capability},
               {"the driver", std::to_string(made.driver), std::to_string(here.driver)},
               {"libraries", joined(made.libraries), joined(here.libraries)}};
  for (const auto &fact : facts)
    if (fact.made != fact.here)
      return {MT_INVALID, path + ": made under other conditions: expected " + fact.what + " " + fact.here + ", found " +
                              fact.made + "; tune again with: mtrun tune PLAN --devices cuda:0"};
  return {};
}

} // namespace mtrun::cuda
