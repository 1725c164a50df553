#include "base/embedding_score.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace foretoken {

double embedding_score(std::span<const float> a, std::span<const float> b) {
  FT_CHECK(a.size() == b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

double token_score(std::span<const float> a, std::span<const float> b, size_t size) {
  FT_CHECK(size > 0 && a.size() % size == 0 && b.size() % size == 0);
  double sum = 0;
  for (size_t i = 0; i < a.size() && !b.empty(); i += size) {
    double best = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < b.size(); j += size) {
      best = std::max(best, embedding_score(a.subspan(i, size), b.subspan(j, size)));
    }
    sum += best;
  }
  return sum;
}

}  // namespace foretoken
