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
// Of the time that is left: later heats have fewer variants and take the rest.
constexpr double kShareOfAHeat = 0.5;

using Clock = std::chrono::steady_clock;

// A variant and what its rounds took.
struct Runner {
  TuneVariant variant;
  std::vector<double> ratios;
  double seconds = 0;
  size_t num_outputs = 0;
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
    for (const BenchPrompt& prompt : prompts) {
      longest_output_ = std::max(longest_output_, prompt.output_len);
    }
    max_output_len_ = bench::output_len_that_fits(0, 1, longest_output_);
  }

  Result<TuneRace> run() {
    FT_RETURN_IF_ERROR(round(false));
    for (int rounds = 0; rounds < options_.max_rounds;) {
      max_output_len_ = output_len_that_fits();
      for (int i = 0; i < kRoundsOfAHeat; ++i, ++rounds) FT_RETURN_IF_ERROR(round(true));
      if (Clock::now() >= options_.deadline) break;
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
      request.sampling.max_tokens = std::min(prompts_[at].output_len, max_output_len_);
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

  // What the next heat may take, by what the round before it took.
  int output_len_that_fits() const {
    const std::chrono::duration<double> left = options_.deadline - Clock::now();
    return bench::output_len_that_fits(kShareOfAHeat * left.count(),
                                       kRoundsOfAHeat * seconds_a_token_ * num_runs(),
                                       longest_output_);
  }

  double num_runs() const { return static_cast<double>(in_race_.size()) + 2; }

  // Everyone on the next prompts, in an order that turns, and before the first and behind the last
  // the requests without drafts, whose mean is what the others are compared with.
  Status round(bool counts) {
    const Clock::time_point begin = Clock::now();
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
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    seconds_a_token_ = elapsed.count() / (num_runs() * max_output_len_);
    for (size_t i = 0; counts && i < runs.size(); ++i) {
      note(before, runs[i], (before.seconds + after.seconds) / 2, runners_[in_race_[i]]);
    }
    return {};
  }

  void note(const BenchRun& without, const BenchRun& run, double seconds_without, Runner& runner) {
    runner.ratios.push_back(seconds_without / run.seconds);
    runner.seconds += run.seconds;
    runner.stats += run.stats;
    runner.num_outputs += run.token_ids.size();
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
    return fmt::format("{} at once, round {}: {} with K = {}, {} in the race, {} tokens each",
                       options_.batch_size, num_rounds_, variant.method, variant.num_draft_tokens,
                       in_race_.size(), max_output_len_);
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
        .mean_output_len = static_cast<double>(runner.stats.num_output_tokens) /
                           static_cast<double>(runner.num_outputs),
        .mean_acceptance_length = mean_acceptance_length(runner.stats),
        .acceptance_by_position = position_rates(runner.stats)};
  }

  Engine& engine_;
  const std::vector<BenchPrompt>& prompts_;
  const TuneRaceOptions options_;
  std::vector<Runner> runners_;
  std::vector<size_t> in_race_;  // places of runners_
  int longest_output_ = 1;
  int max_output_len_ = 1;
  double seconds_a_token_ = 0;  // of one variant's run of the last round
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
