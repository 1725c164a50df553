#include "draft/ngram.h"

#include <string>

#include "kernels/ngram.h"

namespace foretoken {
namespace {

// vLLM's value when a configuration names neither bound.
constexpr int kDefaultLookup = 5;
constexpr int kMaxLookup = 64;

class NgramDrafter final : public Drafter {
 public:
  NgramDrafter(int num_drafts, int min_n, int max_n)
      : num_drafts_(num_drafts), min_n_(min_n), max_n_(max_n) {}

  const char* name() const override { return "ngram"; }
  int max_drafts() const override { return num_drafts_; }
  int64_t memory_bytes() const override { return 0; }

  void propose(Queue& queue, const DraftStep& step) override {
    ngram(queue, {.plan = step.plan,
                  .limits = step.limits,
                  .batch = step.batch,
                  .num_drafts = num_drafts_,
                  .min_n = min_n_,
                  .max_n = max_n_});
  }

 private:
  const int num_drafts_;
  const int min_n_;
  const int max_n_;
};

}  // namespace

Result<std::unique_ptr<Drafter>> make_ngram_drafter(const SpeculativeConfig& config) {
  int min_n = config.prompt_lookup_min;
  int max_n = config.prompt_lookup_max;
  if (min_n == 0 && max_n == 0) min_n = max_n = kDefaultLookup;
  if (min_n == 0) min_n = max_n;
  if (max_n == 0) max_n = min_n;
  if (min_n < 1 || min_n > max_n || max_n > kMaxLookup) {
    return invalid_argument("speculative config: prompt_lookup_min " + std::to_string(min_n) +
                            " and prompt_lookup_max " + std::to_string(max_n) +
                            " must satisfy 1 <= min <= max <= " + std::to_string(kMaxLookup));
  }
  return std::unique_ptr<Drafter>(
      std::make_unique<NgramDrafter>(config.num_speculative_tokens, min_n, max_n));
}

}  // namespace foretoken
