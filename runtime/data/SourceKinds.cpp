// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/SourceKind.h"

#include <algorithm>

namespace mtrun {

extern const SourceKind mnistSource, cifar10Source, cifar100Source, npySource, npzSource, tokensSource, textSource,
    csvSource, imagesSource, tfrecordSource;

static constexpr const SourceKind *kinds[] = {&mnistSource,  &cifar10Source, &cifar100Source, &npySource,
                                              &npzSource,    &tokensSource,  &textSource,     &csvSource,
                                              &imagesSource, &tfrecordSource};

std::span<const SourceKind *const> sourceKinds() { return kinds; }

const SourceKind *findSourceKind(std::string_view name) {
  auto found = std::ranges::find(kinds, name, &SourceKind::name);
  return found == std::end(kinds) ? nullptr : *found;
}

bool SourceKind::takes(std::string_view key) const {
  for (size_t at = 0; at < keys.size();) {
    size_t end = keys.find('=', at);
    if (keys.substr(at, end - at) == key)
      return true;
    at = end + 3; // "=, "
  }
  return false;
}

} // namespace mtrun
