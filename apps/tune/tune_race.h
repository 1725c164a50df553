#pragma once
#include <foretoken/engine.h>

#include <chrono>
#include <string>
#include <vector>

#include "apps/bench/bench_dataset.h"
#include "base/result.h"
#include "bench/draft_tuning.h"

namespace foretoken {

// A way to draft: requests of `method` with so many drafts a step; without drafts where it is
// empty.
struct TuneVariant {
  std::string method;
  int num_draft_tokens = 0;
};

struct TuneRaceOptions {
  int batch_size = 1;
  double temperature = 0;
  std::chrono::steady_clock::time_point deadline;
  int max_rounds = 12;  // of the variants that stay to the end
};

struct TuneRace {
  std::vector<bench::TunedLength> lengths;  // of all variants
  int64_t num_outputs = 0;
  int64_t num_differing = 0;  // outputs that are not those without drafts
};

// Runs the variants on the same prompts in turns, each round beside requests without drafts, and
// leaves the slower half out again and again, so that most of the time goes to those that may win
// (successive halving). A first round, which does not count, says what they take: where the
// deadline leaves no time for whole outputs of so many variants they end earlier, with at least 16
// tokens, and are longer again when fewer are left. At least two rounds of each, also past the
// deadline. Aborted by a signal.
Result<TuneRace> run_tune_race(Engine& engine, const std::vector<BenchPrompt>& prompts,
                               const std::vector<TuneVariant>& variants,
                               const TuneRaceOptions& options);

}  // namespace foretoken
