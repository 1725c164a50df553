#include "spec/touched_experts.h"

#include <cmath>

#include "base/check.h"

namespace foretoken {

double touched_share(int count, int top_k, int64_t rows) {
  FT_CHECK(count > 0 && top_k > 0 && top_k <= count && rows >= 0);
  return 1 - std::pow(1 - static_cast<double>(top_k) / count, static_cast<double>(rows));
}

}  // namespace foretoken
