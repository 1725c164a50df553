#include "base/embedding_score.h"

#include "base/check.h"

namespace foretoken {

double embedding_score(std::span<const float> a, std::span<const float> b) {
  FT_CHECK(a.size() == b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace foretoken
