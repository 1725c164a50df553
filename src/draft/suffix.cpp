#include "draft/suffix.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "device/arena.h"
#include "draft/draft_bounds.h"
#include "draft/parts/absent_drafter.h"
#include "kernels/draft/suffix.h"

namespace foretoken {
namespace {

constexpr double kMaxRequests = 1 << 27;  // half of the table's clock
constexpr double kMaxFactor = 1000;
constexpr auto kNumEntries = static_cast<size_t>(kSuffixTableBytes) / sizeof(suffix_table::Entry);

Status out_of_range(const char* name, double value, const std::string& range) {
  std::ostringstream number;
  number << value;
  return invalid_argument("speculative config: suffix_decoding_" + std::string(name) + " is " +
                          number.str() + "; give a number " + range + ", or leave it out");
}

class SuffixDrafter final : public Drafter {
 public:
  SuffixDrafter(const DrafterTraits& traits, const SuffixFields& fields, Device& device)
      : traits_(traits), fields_(fields), arena_(device, MemoryKind::kDevice) {}

  // ResourceExhausted where the table finds no memory.
  Status make_table() {
    if (fields_.max_cached_requests == 0) return {};
    FT_ASSIGN_OR_RETURN(table_.entries, arena_.take_array<suffix_table::Entry>(
                                            kNumEntries, "the table of past answers"));
    FT_ASSIGN_OR_RETURN(table_.clock,
                        arena_.take_array<uint32_t>(1, "the clock of the table of past answers"));
    table_.num_buckets = static_cast<uint32_t>(kNumEntries / suffix_table::kWays);
    table_.max_age = static_cast<uint32_t>(fields_.max_cached_requests);
    return {};
  }

  const char* name() const override { return "suffix"; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int) const override { return 0; }
  Status take_memory(int, int) override { return {}; }
  int64_t memory_bytes() const override { return static_cast<int64_t>(arena_.bytes_taken()); }

  void forget_texts(Queue& queue) override {
    if (table_.entries == nullptr) return;
    queue.fill(table_.entries, 0, kNumEntries * sizeof(suffix_table::Entry));
    queue.fill(table_.clock, 0, sizeof(uint32_t));
  }

  void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) override {
    const auto min_chance =
        static_cast<int32_t>(fields_.min_token_prob * spec::RateConstants::kOne);
    suffix(queue, {.plan = step.plan,
                   .limits = step.limits,
                   .batch = step.batch,
                   .spans = step.tensors.spans,
                   .table = table_,
                   .num_draft_tokens = shape.num_draft_tokens,
                   .drafter = step.index,
                   .max_depth = fields_.max_tree_depth,
                   .max_factor = static_cast<float>(fields_.max_spec_factor),
                   .min_chance = min_chance,
                   .draft_max_len = traits_.max_len});
  }

 private:
  const DrafterTraits traits_;
  const SuffixFields fields_;
  Arena arena_;
  suffix_table::Table table_{};
};

}  // namespace

Result<SuffixFields> suffix_fields(const SpeculativeConfig& config) {
  const SuffixFields defaults;
  const double depth =
      method_field(config, "suffix_decoding_max_tree_depth", defaults.max_tree_depth);
  const double requests =
      method_field(config, "suffix_decoding_max_cached_requests", defaults.max_cached_requests);
  const double factor =
      method_field(config, "suffix_decoding_max_spec_factor", defaults.max_spec_factor);
  const double least =
      method_field(config, "suffix_decoding_min_token_prob", defaults.min_token_prob);
  if (!(depth >= 1 && depth <= suffix_table::kMaxDepth)) {
    return out_of_range("max_tree_depth", depth,
                        "from 1 to " + std::to_string(suffix_table::kMaxDepth));
  }
  if (!(requests >= 0 && requests <= kMaxRequests)) {
    return out_of_range("max_cached_requests", requests, "from 0 to 134217728");
  }
  if (!(factor >= 0 && factor <= kMaxFactor)) {
    return out_of_range("max_spec_factor", factor, "from 0 to 1000");
  }
  if (!(least >= 0 && least <= 1)) return out_of_range("min_token_prob", least, "from 0 to 1");
  return SuffixFields{static_cast<int>(depth), static_cast<int>(requests), factor, least};
}

Status check_suffix_fields(const SpeculativeConfig& config) {
  return suffix_fields(config).status();
}

Result<std::unique_ptr<Drafter>> make_suffix_drafter(const DrafterContext& context) {
  const SpeculativeConfig& config = context.config;
  FT_ASSIGN_OR_RETURN(const SuffixFields fields, suffix_fields(config));
  FT_ASSIGN_OR_RETURN(const int max_len, draft_max_len(context, context.max_model_len));
  DrafterTraits traits = declared_traits("suffix");
  traits.max_draft_tokens = config.num_speculative_tokens > 0
                                ? config.num_speculative_tokens
                                : std::min(fields.max_tree_depth, kMaxOwnDrafts);
  traits.max_len = max_len;
  if (context.is_absent) return make_absent_drafter("suffix", traits);
  auto drafter = std::make_unique<SuffixDrafter>(traits, fields, context.device);
  FT_RETURN_IF_ERROR(drafter->make_table());
  return std::unique_ptr<Drafter>(std::move(drafter));
}

}  // namespace foretoken
