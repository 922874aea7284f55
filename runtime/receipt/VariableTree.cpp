// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/VariableTree.h"
#include "runtime/plan/Check.h"

#include <algorithm>

namespace mtrun {

static Digest chunkAt(std::span<const std::byte> bytes, uint64_t chunk) {
  uint64_t begin = chunk * chunkBytes;
  return entryDigest(bytes.data() + begin, std::min<uint64_t>(chunkBytes, bytes.size() - begin));
}

Digest rootOfBytes(std::span<const std::byte> bytes) {
  std::vector<Digest> entries;
  for (uint64_t chunk = 0; chunk < chunkCount(bytes.size()); ++chunk)
    entries.push_back(chunkAt(bytes, chunk));
  return rootOf(entries);
}

Digest namedDigest(std::string name, const Digest &root) {
  name += '\0';
  return entryDigest(name.append(root.begin(), root.end()));
}

Status VariableTree::compute(const Session &session) {
  const auto *variables = session.plan().tables().variables();
  struct Place {
    uint32_t variable;
    uint64_t chunk;
  };
  std::vector<std::span<const std::byte>> bytes;
  std::vector<Place> places;
  for (uint32_t i = 0; i < count(variables); ++i) {
    bytes.push_back(session.variable(i)); // also valid after the next variable is read: each has a place of its own
    for (uint64_t chunk = 0; chunk < chunkCount(bytes[i].size()); ++chunk)
      places.push_back({i, chunk});
  }
  if (!session.health().ok())
    return session.health();
  std::vector<Digest> all(places.size());
  session.parallel(static_cast<int64_t>(places.size()), [&](int64_t i) {
    const Place &place = places[static_cast<size_t>(i)];
    all[static_cast<size_t>(i)] = chunkAt(bytes[place.variable], place.chunk);
  });
  chunks.clear();
  for (const Digest &digest : all)
    chunks += hexadecimal(digest).substr(0, chunkDigits);
  ofVariables.clear();
  std::vector<Digest> named;
  size_t at = 0;
  for (uint32_t i = 0; i < count(variables); ++i) {
    auto size = static_cast<size_t>(chunkCount(bytes[i].size()));
    ofVariables.push_back(rootOf(std::span(all).subspan(at, size)));
    at += size;
    named.push_back(namedDigest(variables->Get(i)->name()->str(), ofVariables[i]));
  }
  root = rootOf(named);
  return {};
}

} // namespace mtrun
