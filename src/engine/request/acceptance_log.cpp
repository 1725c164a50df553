#include "engine/request/acceptance_log.h"

#include <numeric>

#include "base/log.h"

namespace foretoken {
namespace {

constexpr std::chrono::seconds kInterval{10};

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

void AcceptanceLog::add_at(Clock::time_point now, int num_drafted, int num_accepted) {
  if (num_drafts_ == 0) begin_ = now;
  ++num_drafts_;
  for (int i = 0; i < num_drafted; ++i) ++drafted_[static_cast<size_t>(i)];
  for (int i = 0; i < num_accepted; ++i) ++accepted_[static_cast<size_t>(i)];
}

std::optional<AcceptanceLog::Clock::time_point> AcceptanceLog::due() const {
  if (num_drafts_ == 0) return std::nullopt;
  return begin_ + kInterval;
}

void AcceptanceLog::write_when_due(Clock::time_point now) {
  if (num_drafts_ == 0 || now < begin_ + kInterval) return;
  const std::string text = line(std::chrono::duration<double>(now - begin_).count());
  if (sink_ != nullptr) {
    sink_(text);
  } else {
    FT_LOG(info, "{}", text);
  }
  num_drafts_ = 0;
  drafted_ = {};
  accepted_ = {};
}

std::string AcceptanceLog::line(double seconds) const {
  const int64_t drafted = std::accumulate(drafted_.begin(), drafted_.end(), int64_t{0});
  const int64_t accepted = std::accumulate(accepted_.begin(), accepted_.end(), int64_t{0});
  std::string rates;
  for (size_t i = 0; i < drafted_.size() && drafted_[i] > 0; ++i) {
    rates += fmt::format("{}{:.3f}", i > 0 ? ", " : "", share(accepted_[i], drafted_[i]));
  }
  return fmt::format(
      "SpecDecoding metrics: Mean acceptance length: {:.2f}, Accepted throughput: {:.2f} tokens/s, "
      "Drafted throughput: {:.2f} tokens/s, Accepted: {} tokens, Drafted: {} tokens, Per-position "
      "acceptance rate: {}, Avg Draft acceptance rate: {:.1f}%",
      1 + share(accepted, num_drafts_), static_cast<double>(accepted) / seconds,
      static_cast<double>(drafted) / seconds, accepted, drafted, rates,
      100 * share(accepted, drafted));
}

}  // namespace foretoken
