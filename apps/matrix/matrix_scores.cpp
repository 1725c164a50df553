#include "apps/matrix/matrix_scores.h"

#include <algorithm>
#include <cmath>

namespace foretoken {
namespace {

constexpr int kLikeliest = 5;

double gap_of(const TokenLogprobs& a, const TokenLogprobs& b) {
  double gap = std::abs(a.token.logprob - b.token.logprob);
  for (const Logprob& one : a.top) {
    for (const Logprob& other : b.top) {
      if (one.token_id != other.token_id) continue;
      gap = std::max<double>(gap, std::abs(one.logprob - other.logprob));
    }
  }
  return gap;
}

}  // namespace

void ask_for_scores(std::vector<Request>& requests) {
  for (size_t i = 0; i < std::min(requests.size(), kScoredPrompts); ++i) {
    requests[i].sampling.logprobs = kLikeliest;
  }
}

double largest_gap(const std::vector<TokenScores>& a, const std::vector<TokenScores>& b) {
  double gap = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    for (size_t t = 0; t < std::min(a[i].size(), b[i].size()); ++t) {
      if (a[i][t].token.token_id != b[i][t].token.token_id) break;
      gap = std::max(gap, gap_of(a[i][t], b[i][t]));
    }
  }
  return gap;
}

}  // namespace foretoken
