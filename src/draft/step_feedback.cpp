#include "draft/step_feedback.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace foretoken {
namespace {

constexpr int64_t kOne = 65536;
constexpr int64_t kMostRatio = 8;

}  // namespace

size_t StepFeedback::row_of(int num_seqs) {
  const auto size = static_cast<size_t>(std::bit_width(static_cast<unsigned>(num_seqs - 1)));
  return std::min(size, size_t{kNumSizes - 1});
}

void StepFeedback::add(int num_seqs, int drafts, int64_t table_ns, int64_t ns) {
  if (num_seqs <= 0 || table_ns <= 0 || ns <= 0) return;
  Cell& cell = rows_[row_of(num_seqs)][static_cast<size_t>(std::clamp(drafts, 0, kMaxDrafts))];
  ++num_added_;
  if (cell.count > 0 && num_added_ - cell.last > kForgotten) cell = {};
  cell.last = num_added_;
  const int64_t ratio = std::clamp(ns * kOne / table_ns, kOne / kMostRatio, kOne * kMostRatio);
  cell.recent[static_cast<size_t>(cell.count++ % kMemory)] = ratio;
  cell.table_ns = table_ns;
  std::array<int64_t, kMemory> sorted = cell.recent;
  std::nth_element(sorted.begin(), sorted.begin() + kMemory / 2, sorted.end());
  cell.ratio = sorted[kMemory / 2];
}

int64_t StepFeedback::extra_ns(int num_seqs, int drafts, int64_t table_ns) const {
  if (num_seqs <= 0) return 0;
  const Row& row = rows_[row_of(num_seqs)];
  const Cell& own = row[static_cast<size_t>(std::clamp(drafts, 0, kMaxDrafts))];
  if (is_known(own)) return table_ns * own.ratio / kOne - table_ns;
  const Cell* nearest = nullptr;
  int least = kMaxDrafts + 1;
  for (int i = 0; i <= kMaxDrafts; ++i) {
    const Cell& cell = row[static_cast<size_t>(i)];
    if (!is_known(cell) || std::abs(i - drafts) >= least) continue;
    nearest = &cell;
    least = std::abs(i - drafts);
  }
  if (nearest == nullptr) return 0;
  const int64_t extra = nearest->table_ns * nearest->ratio / kOne - nearest->table_ns;
  return std::clamp(extra, -table_ns / 2, int64_t{0});
}

}  // namespace foretoken
