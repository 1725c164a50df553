#include "draft/ngram.h"

#include <string>

#include "draft/draft_bounds.h"
#include "kernels/draft/ngram.h"

namespace foretoken {
namespace {

// vLLM's value when a configuration names neither bound.
constexpr int kDefaultLookup = 5;
constexpr int kMaxLookup = 64;

class NgramDrafter final : public Drafter {
 public:
  NgramDrafter(const DrafterTraits& traits, int min_n, int max_n)
      : traits_(traits), min_n_(min_n), max_n_(max_n) {}

  const char* name() const override { return "ngram"; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int) const override { return 0; }
  Status take_memory(int, int) override { return {}; }
  int64_t memory_bytes() const override { return 0; }

  void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) override {
    if (shape.num_draft_tokens == 0) return;
    ngram(queue, {.plan = step.plan,
                  .limits = step.limits,
                  .batch = step.batch,
                  .num_draft_tokens = shape.num_draft_tokens,
                  .drafter = step.index,
                  .min_n = min_n_,
                  .max_n = max_n_});
  }

 private:
  const DrafterTraits traits_;
  const int min_n_;
  const int max_n_;
};

}  // namespace

Result<LookupRange> lookup_range(const SpeculativeConfig& config) {
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
  return LookupRange{min_n, max_n};
}

Status check_ngram_fields(const SpeculativeConfig& config) { return lookup_range(config).status(); }

Result<std::unique_ptr<Drafter>> make_ngram_drafter(const DrafterContext& context) {
  const SpeculativeConfig& config = context.config;
  FT_ASSIGN_OR_RETURN(const LookupRange range, lookup_range(config));
  FT_ASSIGN_OR_RETURN(const int max_len, draft_max_len(context, context.max_model_len));
  DrafterTraits traits = declared_traits("ngram");
  traits.max_draft_tokens = config.num_speculative_tokens;
  traits.max_len = max_len;
  return std::unique_ptr<Drafter>(std::make_unique<NgramDrafter>(traits, range.min_n, range.max_n));
}

}  // namespace foretoken
