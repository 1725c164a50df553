#include "apps/tune/tune_race.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>

#include "apps/bench/bench_run.h"
#include "apps/bench/pair_stats.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"

namespace foretoken {
namespace {

constexpr int kRoundsOfAHeat = 2;
constexpr size_t kMinKept = 2;

// A variant and what its rounds took.
struct Runner {
  TuneVariant variant;
  std::vector<double> ratios;
  double seconds = 0;
  RequestStats stats;
};

class Race {
 public:
  Race(Engine& engine, const std::vector<BenchPrompt>& prompts,
       const std::vector<TuneVariant>& variants, const TuneRaceOptions& options)
      : engine_(engine), prompts_(prompts), options_(options) {
    for (const TuneVariant& variant : variants) runners_.emplace_back().variant = variant;
    in_race_.resize(runners_.size());
    std::iota(in_race_.begin(), in_race_.end(), size_t{0});
  }

  Result<TuneRace> run() {
    FT_RETURN_IF_ERROR(round(false));
    for (int rounds = 0; rounds < options_.max_rounds;) {
      for (int i = 0; i < kRoundsOfAHeat; ++i, ++rounds) FT_RETURN_IF_ERROR(round(true));
      if (std::chrono::steady_clock::now() >= options_.deadline) break;
      leave_slow_ones_out();
    }
    for (const Runner& runner : runners_) race_.lengths.push_back(summary(runner));
    return race_;
  }

 private:
  std::vector<Request> requests(const TuneVariant& variant) const {
    std::vector<Request> all(static_cast<size_t>(options_.batch_size));
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t at = (next_prompt_ + i) % prompts_.size();
      Request& request = all[i];
      request.request_id = "tune-" + std::to_string(i);
      request.prompt_token_ids = prompts_[at].ids;
      request.sampling.max_tokens = prompts_[at].output_len;
      request.sampling.temperature = static_cast<float>(options_.temperature);
      request.sampling.seed = at;
      request.sampling.detokenize = false;
      // A drafter that learns from answers would know those of the other variants and batch sizes,
      // and of the last time that the prompts were repeated.
      request.cache_salt = fmt::format("{} {} {} {}", variant.method, variant.num_draft_tokens,
                                       options_.batch_size, (next_prompt_ + i) / prompts_.size());
      request.speculative.enabled = !variant.method.empty();
      if (variant.method.empty()) continue;
      request.speculative.method = variant.method;
      request.speculative.num_speculative_tokens = variant.num_draft_tokens;
    }
    return all;
  }

  // Everyone on the next prompts, in an order that turns, and before the first and behind the last
  // the requests without drafts, whose mean is what the others are compared with.
  Status round(bool counts) {
    FT_ASSIGN_OR_RETURN(const BenchRun before, run_bench_requests(engine_, requests({}), {}));
    std::vector<BenchRun> runs(in_race_.size());
    for (size_t i = 0; i < in_race_.size(); ++i) {
      const size_t at = (i + num_rounds_) % in_race_.size();
      if (progress_.due()) progress_.show(text_of(runners_[in_race_[at]].variant));
      FT_ASSIGN_OR_RETURN(
          runs[at], run_bench_requests(engine_, requests(runners_[in_race_[at]].variant), {}));
    }
    FT_ASSIGN_OR_RETURN(const BenchRun after, run_bench_requests(engine_, requests({}), {}));
    next_prompt_ += static_cast<size_t>(options_.batch_size);
    ++num_rounds_;
    for (size_t i = 0; counts && i < runs.size(); ++i) {
      note(before, runs[i], (before.seconds + after.seconds) / 2, runners_[in_race_[i]]);
    }
    return {};
  }

  void note(const BenchRun& without, const BenchRun& run, double seconds_without, Runner& runner) {
    runner.ratios.push_back(seconds_without / run.seconds);
    runner.seconds += run.seconds;
    runner.stats += run.stats;
    for (size_t i = 0; i < run.token_ids.size(); ++i) {
      ++race_.num_outputs;
      race_.num_differing += run.token_ids[i] != without.token_ids[i] ? 1 : 0;
    }
  }

  void leave_slow_ones_out() {
    std::vector<double> ratios;
    for (const size_t at : in_race_) ratios.push_back(median(runners_[at].ratios));
    std::vector<size_t> kept;
    for (const size_t place : bench::faster_half(ratios, kMinKept)) kept.push_back(in_race_[place]);
    in_race_ = std::move(kept);
  }

  std::string text_of(const TuneVariant& variant) const {
    return fmt::format("{} at once, round {}: {} with K = {}, {} in the race", options_.batch_size,
                       num_rounds_, variant.method, variant.num_draft_tokens, in_race_.size());
  }

  bench::TunedLength summary(const Runner& runner) const {
    const MedianInterval interval = median_interval(runner.ratios);
    return {
        .drafter = runner.variant.method,
        .num_draft_tokens = runner.variant.num_draft_tokens,
        .batch_size = options_.batch_size,
        .ratios = runner.ratios,
        .ratio = interval.median,
        .low = interval.low,
        .high = interval.high,
        .tokens_per_second = static_cast<double>(runner.stats.num_output_tokens) / runner.seconds,
        .mean_acceptance_length = mean_acceptance_length(runner.stats),
        .acceptance_by_position = position_rates(runner.stats)};
  }

  Engine& engine_;
  const std::vector<BenchPrompt>& prompts_;
  const TuneRaceOptions options_;
  std::vector<Runner> runners_;
  std::vector<size_t> in_race_;  // places of runners_
  size_t next_prompt_ = 0;
  size_t num_rounds_ = 0;
  ProgressLine progress_;
  TuneRace race_;
};

}  // namespace

Result<TuneRace> run_tune_race(Engine& engine, const std::vector<BenchPrompt>& prompts,
                               const std::vector<TuneVariant>& variants,
                               const TuneRaceOptions& options) {
  return Race(engine, prompts, variants, options).run();
}

}  // namespace foretoken
