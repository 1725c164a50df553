#include "speculation_log.h"

#include <spdlog/fmt/fmt.h>

#include "base/log.h"
#include "report.h"

namespace foretoken {
namespace {

constexpr double kIntervalSeconds = 10;

RequestStats difference(const RequestStats& before, const RequestStats& now) {
  RequestStats news;
  news.num_drafts = now.num_drafts - before.num_drafts;
  news.num_draft_tokens = now.num_draft_tokens - before.num_draft_tokens;
  news.num_accepted_tokens = now.num_accepted_tokens - before.num_accepted_tokens;
  for (size_t i = 0; i < news.num_draft_tokens_per_pos.size(); ++i) {
    news.num_draft_tokens_per_pos[i] =
        now.num_draft_tokens_per_pos[i] - before.num_draft_tokens_per_pos[i];
    news.num_accepted_tokens_per_pos[i] =
        now.num_accepted_tokens_per_pos[i] - before.num_accepted_tokens_per_pos[i];
  }
  return news;
}

}  // namespace

std::string speculation_log_line(const RequestStats& before, const RequestStats& now,
                                 double seconds) {
  const RequestStats news = difference(before, now);
  if (news.num_drafts <= 0 || seconds <= 0) return {};
  return fmt::format(
      "SpecDecoding metrics: Mean acceptance length: {:.2f}, Accepted throughput: {:.2f} tokens/s, "
      "Drafted throughput: {:.2f} tokens/s, Accepted: {} tokens, Drafted: {} tokens, Per-position "
      "acceptance rate: {}, Avg Draft acceptance rate: {:.1f}%",
      mean_acceptance_length(news), static_cast<double>(news.num_accepted_tokens) / seconds,
      static_cast<double>(news.num_draft_tokens) / seconds, news.num_accepted_tokens,
      news.num_draft_tokens, position_rates_text(news), 100 * acceptance_rate(news));
}

SpeculationLog::SpeculationLog(const Engine& engine)
    : engine_(&engine),
      drafts_(!engine.info().drafter.empty()),
      before_(engine.stats().requests),
      since_(std::chrono::steady_clock::now()) {}

void SpeculationLog::tick() {
  if (!drafts_) return;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - since_).count();
  if (seconds < kIntervalSeconds) return;
  const RequestStats stats = engine_->stats().requests;
  if (const std::string line = speculation_log_line(before_, stats, seconds); !line.empty()) {
    FT_LOG(info, "{}", line);
  }
  before_ = stats;
  since_ = now;
}

}  // namespace foretoken
