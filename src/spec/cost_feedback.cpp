#include "spec/cost_feedback.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

namespace foretoken {

size_t CostFeedback::row_of(int num_seqs) {
  const int power = std::bit_width(static_cast<unsigned>(num_seqs - 1));
  const bool upper = int64_t{num_seqs} * 4 > int64_t{3} << power;
  return std::min(static_cast<size_t>(power * 2 + (upper ? 1 : 0)), size_t{kNumSizes - 1});
}

void CostFeedback::add(int num_seqs, int drafts, int64_t table_ns, int64_t ns) {
  if (num_seqs <= 0 || table_ns <= 0 || ns <= 0) return;
  const int own = std::clamp(drafts, 0, kMaxDraftTokens);
  const int64_t most = of_rough_ ? kMaxRoughRatio : kMaxRatio;
  const int64_t ratio = std::clamp(ns * kRatioOne / table_ns, kRatioOne / most, kRatioOne * most);
  add_ratio(row_of(num_seqs), static_cast<size_t>(own), ratio, table_ns);
}

void CostFeedback::add_ratio(size_t size, size_t drafts, int64_t ratio, int64_t table_ns) {
  max_draft_tokens_ = std::max(max_draft_tokens_, static_cast<int>(drafts));
  Cell& cell = rows_[size][drafts];
  ++num_added_;
  if (cell.count == 0 || num_added_ - cell.last > forgotten()) {
    cell = {};
    cell.recent.fill(std::numeric_limits<int64_t>::max());
  }
  cell.last = num_added_;
  cell.recent[static_cast<size_t>(cell.count++ % kMemory)] = ratio;
  cell.table_ns = table_ns;
  std::array<int64_t, kMemory> sorted = cell.recent;
  const bool is_shortest = of_rough_ || cell.count < kMemory;
  const auto counts = sorted.begin() + (is_shortest ? 0 : kMemory / 2);
  std::nth_element(sorted.begin(), counts, sorted.end());
  cell.ratio = *counts;
}

int64_t CostFeedback::extra_ns(int num_seqs, int drafts, int64_t table_ns) const {
  if (num_seqs <= 0) return 0;
  const Row& row = rows_[row_of(num_seqs)];
  const int own = std::clamp(drafts, 0, kMaxDraftTokens);
  int nearest = -1;
  for (int i = 0; i <= max_draft_tokens_; ++i) {
    if (!is_known(row[static_cast<size_t>(i)])) continue;
    if (nearest < 0 || std::abs(i - own) < std::abs(nearest - own)) nearest = i;
  }
  if (nearest < 0) return 0;
  const Cell& cell = row[static_cast<size_t>(nearest)];
  const auto extra = [&](int64_t of_ns) { return of_ns * cell.ratio / kRatioOne - of_ns; };
  const bool by_factor = of_guess_ || (of_rough_ && nearest > own);
  if (nearest == own || by_factor) return extra(table_ns);
  const int64_t difference = extra(cell.table_ns);
  if (nearest > own) return std::max(std::min<int64_t>(difference, 0), -table_ns / 2);
  const int64_t more = nearest > 0 ? extra(table_ns) : difference;
  return std::max({difference, more, -table_ns / 2});
}

std::vector<CostFeedback::Known> CostFeedback::known() const {
  std::vector<Known> all;
  for (size_t size = 0; size < rows_.size(); ++size) {
    for (size_t drafts = 0; drafts < rows_[size].size(); ++drafts) {
      const Cell& cell = rows_[size][drafts];
      if (!is_known(cell)) continue;
      all.push_back({static_cast<int>(size), static_cast<int>(drafts), cell.ratio, cell.table_ns});
    }
  }
  return all;
}

void CostFeedback::begin_with(std::span<const Known> known, bool of_guess, bool of_rough) {
  *this = {};
  of_guess_ = of_guess;
  of_rough_ = of_rough;
  for (const Known& each : known) {
    for (int i = 0; i < kFew; ++i) {
      add_ratio(static_cast<size_t>(each.size), static_cast<size_t>(each.drafts), each.ratio,
                each.table_ns);
    }
  }
}

}  // namespace foretoken
