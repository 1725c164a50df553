#include "kernels/experts/route_experts.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/experts/route_math.h"

namespace foretoken::cpu {
namespace {

// What is known of each expert for one row.
struct ExpertRow {
  float scores[kMaxExperts];
  float ranks[kMaxExperts];
  bool open[kMaxExperts];  // may be chosen
};

// The lowest of the open places with the largest value; the lowest open one where none compares.
template <class IsOpen>
int best_of(const float* values, int count, const IsOpen& is_open) {
  int best = -1;
  for (int i = 0; i < count; ++i) {
    if (is_open(i) && (best < 0 || values[i] > values[best])) best = i;
  }
  return best;
}

float chained_sum(const float* values, int count) {
  float chains[route_math::kChains] = {};
  for (int i = 0; i < count; ++i) chains[i % route_math::kChains] += values[i];
  for (int half = route_math::kChains / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) chains[i] += chains[i + half];
  }
  return chains[0];
}

void softmax(const float* logits, int count, float* to) {
  const float largest = logits[best_of(logits, count, [](int) { return true; })];
  for (int i = 0; i < count; ++i) {
    to[i] = route_math::exp_nonpositive(logits[i] - largest);
  }
  const float sum = chained_sum(to, count);
  for (int i = 0; i < count; ++i) to[i] = to[i] / sum;
}

void score(const RouteExpertsArgs& a, const float* logits, ExpertRow& row) {
  if (a.score == ExpertScore::kSoftmax) {
    softmax(logits, a.num_experts, row.scores);
  } else if (route_math::takes_sigmoids(a)) {
    for (int e = 0; e < a.num_experts; ++e) {
      row.scores[e] = activation_math::sigmoid(logits[e]);
    }
  } else if (a.score == ExpertScore::kSqrtSoftplus) {
    for (int e = 0; e < a.num_experts; ++e) row.scores[e] = route_math::sqrt_softplus(logits[e]);
  } else {
    std::copy_n(logits, a.num_experts, row.scores);
  }
  for (int e = 0; e < a.num_experts; ++e) {
    row.ranks[e] = route_math::rank_of(a, e, logits[e], row.scores[e]);
  }
}

float rank_of_group(const RouteExpertsArgs& a, const float* ranks, int size) {
  const int best = best_of(ranks, size, [](int) { return true; });
  if (a.groups == ExpertGroups::kBest || size == 1) return ranks[best];
  const int second = best_of(ranks, size, [&](int i) { return i != best; });
  return route_math::group_rank(a, ranks[best], ranks[second]);
}

void open_groups(const RouteExpertsArgs& a, ExpertRow& row) {
  std::fill_n(row.open, a.num_experts, a.num_groups == 1);
  if (a.num_groups == 1) return;
  const int size = a.num_experts / a.num_groups;
  float ranks[kMaxExperts];
  bool chosen[kMaxExperts] = {};
  for (int g = 0; g < a.num_groups; ++g) ranks[g] = rank_of_group(a, row.ranks + g * size, size);
  for (int i = 0; i < a.top_groups; ++i) {
    const int best = best_of(ranks, a.num_groups, [&](int g) { return !chosen[g]; });
    chosen[best] = true;
    std::fill_n(row.open + best * size, size, true);
  }
}

// What the last chosen expert weighs among those near it; those chosen before are no more.
float mixed_weight(const RouteExpertsArgs& a, const float* logits, const ExpertRow& row, int best) {
  float near[kMaxExperts];
  for (int e = 0; e < a.num_experts; ++e) {
    const bool counts =
        (row.open[e] || e == best) && !route_math::is_far(logits[e], logits[best], a.jitter);
    near[e] = counts ? route_math::exp_nonpositive(logits[e] - logits[best]) : 0.0f;
  }
  return near[best] / chained_sum(near, a.num_experts);
}

// The experts that the table has for the row's token.
void take_listed(const RouteExpertsArgs& a, int64_t r, const ExpertRow& row) {
  const int top_k = a.lists.top_k;
  const int32_t* listed = a.table + int64_t{a.token_ids[r]} * top_k;
  for (int slot = 0; slot < top_k; ++slot) {
    a.ids[r * top_k + slot] = listed[slot];
    a.weights[r * top_k + slot] = row.scores[listed[slot]];
  }
  route_math::finish_weights(a, a.ids + r * top_k, a.weights + r * top_k);
}

void route_row(const RouteExpertsArgs& a, int64_t r) {
  const float* logits = a.logits + r * a.num_experts;
  const int top_k = a.lists.top_k;
  ExpertRow row;
  score(a, logits, row);
  if (a.table != nullptr) return take_listed(a, r, row);
  open_groups(a, row);
  float* weights = a.weights + r * top_k;
  for (int slot = 0; slot < top_k; ++slot) {
    const int best = best_of(row.ranks, a.num_experts, [&](int e) { return row.open[e]; });
    row.open[best] = false;
    a.ids[r * top_k + slot] = best;
    weights[slot] = a.score == ExpertScore::kSparseMixer ? mixed_weight(a, logits, row, best)
                                                         : row.scores[best];
  }
  route_math::finish_weights(a, a.ids + r * top_k, weights);
}

// Entries of each expert, ascending: counted, then placed.
void list_entries(const RouteExpertsArgs& a, int rows) {
  const ExpertLists& lists = a.lists;
  const int64_t choices = int64_t{rows} * lists.top_k;
  int32_t next[kMaxExperts] = {};
  const auto own = [&](int64_t i) { return a.ids[i] - a.first_expert; };
  const auto is_own = [&](int expert) { return expert >= 0 && expert < lists.count; };
  for (int64_t i = 0; i < choices; ++i) {
    if (is_own(own(i))) ++next[own(i)];
  }
  int32_t begin = 0;
  for (int e = 0; e < lists.count; ++e) {
    lists.begins[e] = begin;
    begin += next[e];
    next[e] = lists.begins[e];
  }
  lists.begins[lists.count] = begin;
  for (int64_t i = 0; i < choices; ++i) {
    if (is_own(own(i))) lists.entries[next[own(i)]++] = static_cast<int32_t>(i);
  }
}

}  // namespace

void route_experts(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const RouteExpertsArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kToken, 0, a.max_rows);
  const int64_t cost = int64_t{a.num_experts} * (a.lists.top_k + 8);
  if (a.logits != nullptr) for_each_row(pool, rows, cost, [&](int64_t r) { route_row(a, r); });
  list_entries(a, rows);
}

}  // namespace foretoken::cpu
