// SPDX-License-Identifier: Apache-2.0
//
// Suggestions for misspelled words in messages of the tools, the importers and the data sources.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

// Returns the number of insertions, deletions, replacements and swaps of adjacent letters between two words. Upper and
// lower case are equal, as are '-' and '_'.
inline size_t editDistance(std::string_view a, std::string_view b) {
  auto same = [](char x, char y) {
    auto fold = [](char c) { return c == '_' ? '-' : std::tolower(static_cast<unsigned char>(c)); };
    return fold(x) == fold(y);
  };
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + !same(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

// Returns the word of `known` nearest to `word` if at most a third of the letters differ; else a word that begins with
// `word`; else "".
inline std::string nearestWord(std::string_view word, const std::vector<std::string> &known) {
  constexpr size_t longest = 64, minPrefix = 3;
  if (word.empty() || word.size() > longest)
    return {};
  size_t best = std::max<size_t>(word.size() / 3, word.size() > 2 ? 1 : 0) + 1;
  std::string nearest;
  for (const std::string &candidate : known) {
    if (candidate.size() > longest)
      continue;
    if (size_t distance = editDistance(word, candidate); distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  for (const std::string &candidate : known)
    if (nearest.empty() && word.size() >= minPrefix && candidate.starts_with(word))
      nearest = candidate;
  return nearest;
}

// Returns the end of a message about `word`: "; did you mean NEAREST?", or "".
inline std::string didYouMean(std::string_view word, const std::vector<std::string> &known) {
  std::string nearest = nearestWord(word, known);
  return nearest.empty() ? nearest : "; did you mean " + nearest + "?";
}

} // namespace mtrun
