#include "draft/block_drafter.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "draft/block_pass.h"
#include "draft/draft_bounds.h"
#include "draft/draft_output.h"
#include "draft/draft_passes.h"
#include "draft/head_options.h"
#include "draft/markov_output.h"
#include "draft/parts/absent_drafter.h"
#include "draft/parts/tap_pages.h"
#include "model/block_head.h"

namespace foretoken {
namespace {

int block_rows(const DraftHeadConfig& head, int num_draft_tokens) {
  return num_draft_tokens + (head.anchor_drafts ? 0 : 1);
}

class BlockDrafter final : public Drafter {
 public:
  BlockDrafter(const char* name, const DrafterContext& context, std::unique_ptr<BlockHead> head,
               const DrafterTraits& traits, bool probabilistic)
      : name_(name),
        device_(context.device),
        target_(context.target),
        traits_(traits),
        probabilistic_(probabilistic),
        least_confidence_(static_cast<float>(method_field(context.config, kConfidenceField, 0))),
        head_(std::move(head)),
        catch_up_(context.device, context.max_rows, context.max_spans),
        block_(context.device, context.max_spans,
               {.mask_id = head_->config().mask_id,
                .rows = block_rows(head_->config(), traits.max_draft_tokens),
                .max_draft_tokens = traits.max_draft_tokens}),
        taps_(context.device, context.target, head_->config().tap_layers) {}

  Status take_scratch();

  const char* name() const override { return name_; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int block_size) const override {
    return kv_bytes_per_block(head_->kv_group(), block_size) + taps_.bytes_per_block(block_size);
  }
  Status take_memory(int num_blocks, int block_size) override;
  std::vector<BlockPart> block_parts() const override;
  int64_t memory_bytes() const override {
    return head_->weight_bytes() + head_->scratch_bytes() + catch_up_.bytes() + block_.bytes() +
           (output_ ? output_->bytes() : 0) + (markov_ ? markov_->bytes() : 0);
  }
  const KvCache* kv_cache() const override { return cache_.get(); }
  void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) override;

 private:
  void draft(Queue& queue, const DraftStep& step, const DraftShape& shape,
             const DraftTensors& known);
  Status take_markov();
  OutputMatrix matrix() const { return output_matrix_of(head_->head(), head_->config().layer); }

  const char* const name_;
  Device& device_;
  Model& target_;
  const DrafterTraits traits_;
  const bool probabilistic_;
  const float least_confidence_;
  const std::unique_ptr<BlockHead> head_;
  DraftPasses catch_up_;
  BlockPass block_;
  std::optional<DraftOutput> output_;   // where drafts do not depend on one another
  std::optional<MarkovOutput> markov_;  // where they do
  TapPages taps_;
  std::unique_ptr<KvCache> cache_;
};

Status BlockDrafter::take_scratch() {
  FT_RETURN_IF_ERROR(catch_up_.take({.token_map = nullptr,
                                     .first_entry = 1,
                                     .max_len = traits_.max_len,
                                     .keeps_written = traits_.keeps_written}));
  FT_RETURN_IF_ERROR(block_.take());
  if (head_->markov().output != nullptr) return take_markov();
  output_.emplace(device_, DraftOutput::Sizes{.max_logits_rows = block_.max_logits_rows(),
                                              .matrix_rows = matrix().rows,
                                              .target_vocab = target_.config().vocab_size,
                                              .probabilistic = probabilistic_,
                                              .mapped = matrix().id_map != nullptr,
                                              .masked = false,
                                              .cut = matrix().sharding.is_cut()});
  return output_->take();
}

Status BlockDrafter::take_markov() {
  markov_.emplace(device_,
                  MarkovOutput::Sizes{.max_spans = catch_up_.max_logits_rows(),
                                      .max_draft_tokens = traits_.max_draft_tokens,
                                      .matrix_rows = matrix().rows,
                                      .target_vocab = target_.config().vocab_size,
                                      .mapped = matrix().id_map != nullptr,
                                      .hidden = matrix().hidden,
                                      .dtype = matrix().dtype,
                                      .probabilistic = probabilistic_,
                                      .is_cut = matrix().sharding.is_cut(),
                                      .leads = !head_->config().anchor_drafts,
                                      .least_confidence = least_confidence_},
                  head_->markov());
  return markov_->take();
}

Status BlockDrafter::take_memory(int num_blocks, int block_size) {
  FT_CHECK(cache_ == nullptr);
  FT_RETURN_IF_ERROR(taps_.take(num_blocks, block_size));
  FT_ASSIGN_OR_RETURN(cache_, KvCache::create(device_, head_->kv_group(), num_blocks, block_size));
  cache_->prefer_small_fronts(device_);
  return {};
}

std::vector<BlockPart> BlockDrafter::block_parts() const {
  std::vector<BlockPart> parts = cache_->block_parts();
  parts.push_back(taps_.block_part());
  return parts;
}

void BlockDrafter::propose(Queue& queue, const DraftStep& step, const DraftShape& shape) {
  FT_CHECK(cache_ != nullptr);
  const DraftShape known{.num_draft_tokens = 0,
                         .max_catch_up_rows = shape.max_catch_up_rows,
                         .max_spans = shape.max_spans};
  catch_up_.enqueue(queue, step, known, [&](int, const DraftTensors& tensors, int max_rows, int) {
    head_->catch_up(queue, tensors, step.batch, *cache_, taps_.source(), max_rows);
    if (shape.num_draft_tokens > 0) draft(queue, step, shape, tensors);
  });
}

// Without the masks of grammars: drafts that one refuses are repaired behind the drafter.
void BlockDrafter::draft(Queue& queue, const DraftStep& step, const DraftShape& shape,
                         const DraftTensors& known) {
  DraftStep unmasked = step;
  unmasked.masks = {};
  const int max_logits_rows = shape.max_spans * shape.num_draft_tokens;
  const int max_rows = block_.lay_out(queue, step, shape, known);
  head_->forward(queue, block_.tensors(), block_.last_seen(), step.batch, *cache_, max_rows);
  const void* states = head_->head_input(queue, block_.tensors(), max_logits_rows);
  if (markov_) {
    markov_->draw(queue, matrix(), states, block_, step, shape);
  } else {
    output_->draw(queue, matrix(), states, {block_.drawn(), max_logits_rows}, unmasked);
  }
  block_.take_drafts(queue, step, max_logits_rows);
}

Result<int> max_draft_tokens(const SpeculativeConfig& config, const DraftHeadConfig& head) {
  const int in_block = head.block_size - (head.anchor_drafts ? 0 : 1);
  const int most = std::min(in_block, kMaxDraftTokens);
  const int wanted = config.num_speculative_tokens;
  if (wanted == 0) return std::min(most, kMaxOwnDrafts);
  if (wanted <= most) return wanted;
  return invalid_argument("speculative config: num_speculative_tokens is " +
                          std::to_string(wanted) + ", but the head drafts " +
                          std::to_string(in_block) + " tokens at once; give at most " +
                          std::to_string(most) + ", or leave it out");
}

}  // namespace

Result<std::unique_ptr<Drafter>> make_block_drafter(const DrafterContext& context, HeadKind kind,
                                                    const char* name) {
  const ModelConfig& target = context.target.config();
  ConfigOptions options;
  options.dtype = dtype_name(target.dtype);
  FT_ASSIGN_OR_RETURN(const DraftHeadConfig config,
                      read_draft_head_config(context.folder, kind, target, options));
  FT_ASSIGN_OR_RETURN(const int drafts, max_draft_tokens(context.config, config));
  FT_ASSIGN_OR_RETURN(const int max_len, draft_max_len(context, config.layer.max_context));
  FT_ASSIGN_OR_RETURN(const bool probabilistic, samples_drafts(context.config));
  DrafterTraits traits = declared_traits(name);
  traits.max_draft_tokens = drafts;
  traits.max_len = max_len;
  traits.entries_ahead = block_rows(config, drafts);
  if (context.is_absent) return make_absent_drafter(name, traits);
  const int rows = context.max_spans * block_rows(config, drafts);
  DraftHeadOptions of_head = head_options(
      context, max_len,
      {.of_pass = std::max(context.max_rows, rows), .of_logits = context.max_spans * drafts});
  of_head.sharding = sharding_of_drafter(config.layer, context.sharding);
  FT_ASSIGN_OR_RETURN(
      auto head, load_block_head(context.device, context.folder, config, context.target, of_head));
  auto drafter =
      std::make_unique<BlockDrafter>(name, context, std::move(head), traits, probabilistic);
  FT_RETURN_IF_ERROR(drafter->take_scratch());
  return std::unique_ptr<Drafter>(std::move(drafter));
}

}  // namespace foretoken
