#include "bench/draft_tuning.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace foretoken::bench {
namespace {

constexpr double kClose = 0.98;
constexpr int kShortestOutput = 16;

std::string position_text(const std::vector<double>& rates) {
  std::string text;
  for (const double rate : rates) text += fmt::format("{}{:.2f}", text.empty() ? "" : " ", rate);
  return text;
}

// A drafter's best length at each batch size.
using BestLengths = std::map<int, const TunedLength*>;

std::map<std::string, BestLengths> best_lengths(const std::vector<TunedLength>& lengths) {
  std::map<std::string, BestLengths> best;
  for (const TunedLength& length : lengths) {
    const TunedLength*& known = best[length.drafter][length.batch_size];
    if (known == nullptr || length.ratio > known->ratio) known = &length;
  }
  return best;
}

TunedChoice choice_of(const std::string& drafter, const BestLengths& best) {
  TunedChoice choice{.drafter = drafter};
  double sum_of_logs = 0;
  for (const auto& [batch_size, length] : best) {
    if (length->low <= 1) continue;
    sum_of_logs += std::log(length->ratio);
    choice.num_draft_tokens = std::max(choice.num_draft_tokens, length->num_draft_tokens);
  }
  choice.speed_up = std::exp(sum_of_logs / static_cast<double>(best.size()));
  return choice;
}

}  // namespace

int output_len_that_fits(double seconds, double seconds_a_token, int longest) {
  return static_cast<int>(
      std::clamp<double>(seconds / seconds_a_token, std::min(kShortestOutput, longest), longest));
}

std::vector<size_t> faster_half(const std::vector<double>& ratios, size_t min_kept) {
  std::vector<size_t> order(ratios.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ratios[a] > ratios[b]; });
  size_t kept = std::min(order.size(), std::max((order.size() + 1) / 2, min_kept));
  while (kept > 0 && kept < order.size() &&
         ratios[order[kept]] >= kClose * ratios[order[kept - 1]]) {
    ++kept;
  }
  order.resize(kept);
  std::sort(order.begin(), order.end());
  return order;
}

std::optional<TunedChoice> choose_drafts(const std::vector<TunedLength>& lengths) {
  std::optional<TunedChoice> chosen;
  for (const auto& [drafter, best] : best_lengths(lengths)) {
    const TunedChoice choice = choice_of(drafter, best);
    if (choice.num_draft_tokens == 0) continue;
    if (!chosen || choice.speed_up > chosen->speed_up) chosen = choice;
  }
  return chosen;
}

std::vector<TunedRange> lengths_by_batch(const std::vector<TunedLength>& lengths,
                                         const std::string& drafter) {
  const std::map<std::string, BestLengths> all = best_lengths(lengths);
  const auto found = all.find(drafter);
  if (found == all.end()) return {};
  std::vector<TunedRange> ranges;
  int before = 0;
  for (const auto& [batch_size, length] : found->second) {
    const int drafts = length->low > 1 ? length->num_draft_tokens : 0;
    TunedRange next{.first = 1, .last = batch_size, .num_draft_tokens = drafts};
    if (!ranges.empty()) {
      ranges.back().last = static_cast<int>(std::sqrt(double{1} * before * batch_size));
      next.first = ranges.back().last + 1;
      if (ranges.back().num_draft_tokens == drafts) {
        next.first = ranges.back().first;
        ranges.pop_back();
      }
    }
    ranges.push_back(next);
    before = batch_size;
  }
  return ranges;
}

double mean_speed_up(const std::vector<TunedLength>& lengths) {
  if (lengths.empty()) return 1;
  double sum_of_logs = 0;
  for (const TunedLength& length : lengths) sum_of_logs += std::log(length.ratio);
  return std::exp(sum_of_logs / static_cast<double>(lengths.size()));
}

std::string tuning_table(const std::vector<TunedLength>& lengths) {
  std::string table =
      fmt::format("{:<14} {:>3} {:>6} {:>10} {:>7} {:>16} {:>7}  {}\n", "drafter", "K", "batch",
                  "tokens/s", "speed", "interval", "length", "accepted by position");
  for (const TunedLength& length : lengths) {
    table +=
        fmt::format("{:<14} {:>3} {:>6} {:>10.1f} {:>7.3f} {:>7.3f} to {:>5.3f} {:>7.2f}  {}\n",
                    length.drafter, length.num_draft_tokens, length.batch_size,
                    length.tokens_per_second, length.ratio, length.low, length.high,
                    length.mean_acceptance_length, position_text(length.acceptance_by_position));
  }
  return table;
}

}  // namespace foretoken::bench
