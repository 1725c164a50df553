#include "draft/chain_drafter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "draft/draft_bounds.h"
#include "draft/draft_output.h"
#include "draft/draft_passes.h"
#include "draft/head_options.h"
#include "draft/parts/absent_drafter.h"
#include "draft/parts/tap_pages.h"

namespace foretoken {
namespace {

class ChainDrafter final : public Drafter {
 public:
  ChainDrafter(const char* name, const DrafterContext& context, std::unique_ptr<ChainHead> head,
               const DrafterTraits& traits, DraftOutput::Sizes sizes)
      : name_(name),
        dtype_(context.target.config().dtype),
        traits_(traits),
        head_(std::move(head)),
        passes_(context.device, context.max_spans, context.max_spans),
        taps_(context.device, context.target, {TapSink::kFinalNorm}),
        output_(context.device, complete(sizes)) {}

  Status take_scratch() {
    FT_RETURN_IF_ERROR(passes_.take({.token_map = nullptr,
                                     .first_entry = 0,
                                     .max_len = traits_.max_len,
                                     .keeps_written = false,
                                     .last_only = true,
                                     .tells_seen = traits_.reads_target_kv}));
    return output_.take();
  }

  const char* name() const override { return name_; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int block_size) const override {
    return taps_.bytes_per_block(block_size);
  }
  Status take_memory(int num_blocks, int block_size) override {
    FT_RETURN_IF_ERROR(taps_.take(num_blocks, block_size));
    has_pages_ = true;
    return {};
  }
  std::vector<BlockPart> block_parts() const override { return {taps_.block_part()}; }
  int64_t memory_bytes() const override {
    return head_->weight_bytes() + head_->scratch_bytes() + passes_.bytes() + output_.bytes();
  }
  void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) override;

 private:
  DraftOutput::Sizes complete(DraftOutput::Sizes sizes) const;
  OutputMatrix matrix(int step) const {
    const ChainHead::Output output = head_->output(step);
    return {.weight = output.head.weight,
            .id_map = output.head.id_map,
            .rows = output.head.rows,
            .hidden = output.hidden,
            .dtype = dtype_,
            .softcap = output.softcap,
            .sharding = output.head.sharding,
            .clusters = output.head.clusters};
  }

  const char* const name_;
  const DType dtype_;
  const DrafterTraits traits_;
  const std::unique_ptr<ChainHead> head_;
  DraftPasses passes_;
  TapPages taps_;
  DraftOutput output_;
  bool has_pages_ = false;
};

DraftOutput::Sizes ChainDrafter::complete(DraftOutput::Sizes sizes) const {
  for (int step = 0; step < traits_.max_draft_tokens; ++step) {
    sizes.matrix_rows = std::max(sizes.matrix_rows, matrix(step).rows);
    sizes.mapped |= matrix(step).id_map != nullptr;
    sizes.cut |= matrix(step).sharding.is_cut();
    sizes.clusters = std::max(sizes.clusters, matrix(step).clusters.count);
  }
  return sizes;
}

void ChainDrafter::propose(Queue& queue, const DraftStep& step, const DraftShape& shape) {
  FT_CHECK(has_pages_ && shape.num_draft_tokens <= traits_.max_draft_tokens);
  if (shape.num_draft_tokens == 0) return;
  const DraftShape one_row_each{.num_draft_tokens = shape.num_draft_tokens,
                                .max_catch_up_rows = shape.max_spans,
                                .max_spans = shape.max_spans};
  passes_.enqueue(queue, step, one_row_each,
                  [&](int pass, const DraftTensors& tensors, int max_rows, int max_logits_rows) {
                    const DraftHead::Source taps = taps_.source();
                    const void* states = head_->forward(queue, {.step = pass,
                                                                .tensors = tensors,
                                                                .taps = taps,
                                                                .batch = step.batch,
                                                                .target = step.caches,
                                                                .max_rows = max_rows});
                    output_.draw(queue, matrix(pass), states, {tensors.rows, max_logits_rows},
                                 step);
                  });
}

// How many drafts the configuration asks for.
Result<int> chain_len(const SpeculativeConfig& config, int num_heads) {
  const int most = std::min(num_heads, kMaxDraftTokens);
  const int wanted = config.num_speculative_tokens;
  if (wanted == 0) return std::min(most, kMaxOwnDrafts);
  if (wanted <= most) return wanted;
  return invalid_argument("speculative config: num_speculative_tokens is " +
                          std::to_string(wanted) + ", but the head drafts " +
                          std::to_string(num_heads) + " tokens; give at most " +
                          std::to_string(most) + ", or leave it out");
}

}  // namespace

Result<std::unique_ptr<Drafter>> make_chain_drafter(const DrafterContext& context, const char* name,
                                                    const ChainFiles& files) {
  FT_ASSIGN_OR_RETURN(const int drafts, chain_len(context.config, files.max_draft_tokens));
  FT_ASSIGN_OR_RETURN(const int max_len, draft_max_len(context, files.max_len));
  FT_ASSIGN_OR_RETURN(const bool probabilistic, samples_drafts(context.config));
  DrafterTraits traits = declared_traits(name);
  traits.max_draft_tokens = drafts;
  traits.max_len = max_len;
  if (context.is_absent) return make_absent_drafter(name, traits);
  const DraftHeadOptions options = head_options(
      context, max_len, {.of_pass = context.max_spans, .of_logits = context.max_spans});
  FT_ASSIGN_OR_RETURN(std::unique_ptr<ChainHead> head,
                      files.load(context.device, context.target, drafts, options));
  auto drafter = std::make_unique<ChainDrafter>(
      name, context, std::move(head), traits,
      DraftOutput::Sizes{.max_logits_rows = context.max_spans,
                         .target_vocab = context.target.config().vocab_size,
                         .probabilistic = probabilistic,
                         .masked = context.with_grammars});
  FT_RETURN_IF_ERROR(drafter->take_scratch());
  return std::unique_ptr<Drafter>(std::move(drafter));
}

}  // namespace foretoken
