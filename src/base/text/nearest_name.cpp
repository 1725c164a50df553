#include "base/text/nearest_name.h"

#include <algorithm>

namespace foretoken {
namespace {

// Optimal string alignment distance.
size_t num_edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t k = 0; k <= b.size(); ++k) table[0][k] = k;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t change = table[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1);
      size_t best = std::min({table[i - 1][k] + 1, table[i][k - 1] + 1, change});
      const bool swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
      if (swapped) best = std::min(best, table[i - 2][k - 2] + 1);
      table[i][k] = best;
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& known,
                         size_t max_edits) {
  constexpr size_t kLongest = 64;
  if (name.size() > kLongest) return {};
  std::string nearest;
  size_t fewest = std::min(max_edits, std::max<size_t>(1, name.size() / 3)) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest) continue;
    const size_t edits = num_edits(name, candidate);
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = candidate;
  }
  return nearest;
}

std::string nearest_name_hint(const std::string& name, const std::vector<std::string>& known,
                              const std::string& otherwise, size_t max_edits) {
  const std::string nearest = nearest_name(name, known, max_edits);
  return nearest.empty() ? otherwise : "; did you mean '" + nearest + "'?";
}

}  // namespace foretoken
