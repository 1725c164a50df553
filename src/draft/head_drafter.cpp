#include "draft/head_drafter.h"

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
#include "draft/parts/absent_drafter.h"
#include "draft/parts/module_states.h"
#include "draft/parts/tap_pages.h"

namespace foretoken {
namespace {

class HeadDrafter final : public Drafter {
 public:
  HeadDrafter(const char* name, const DrafterContext& context, std::unique_ptr<DraftHead> head,
              const DrafterTraits& traits, bool probabilistic)
      : name_(name),
        device_(context.device),
        target_(context.target),
        traits_(traits),
        probabilistic_(probabilistic),
        masked_(context.with_grammars),
        branches_(context.config.num_branches > 0 && traits.branches),
        head_(std::move(head)),
        num_modules_(head_->config().num_modules),
        passes_(context.device, context.max_rows, context.max_spans),
        taps_(context.device, context.target, head_->config().tap_layers),
        modules_(context.device, num_modules_, head_->config().state_size(),
                 context.target.config().dtype, taps_.parts()) {
    if (!head_->config().traits().learns_masks) return;
    block_.emplace(context.device, context.max_spans,
                   BlockPass::Rules{.mask_id = head_->config().mask_id,
                                    .rows = traits.max_draft_tokens,
                                    .max_draft_tokens = traits.max_draft_tokens,
                                    .first_entry = 0,
                                    .mask_source = head_->mask_source()});
  }

  Status take_scratch();

  const char* name() const override { return name_; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int block_size) const override {
    return kv_bytes_per_block(head_->kv_group(), block_size) + taps_.bytes_per_block(block_size) +
           modules_.bytes_per_block(block_size);
  }
  Status take_memory(int num_blocks, int block_size) override;
  std::vector<BlockPart> block_parts() const override;
  int64_t memory_bytes() const override {
    return head_->weight_bytes() + head_->scratch_bytes() + passes_.bytes() + output_->bytes() +
           modules_.row_bytes() + (block_ ? block_->bytes() : 0);
  }
  const KvCache* kv_cache() const override { return cache_.get(); }
  void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) override;

 private:
  // One pass of a step.
  struct Pass {
    Queue& queue;
    const DraftStep& step;
    const DraftTensors& tensors;
    int number;
    int num_passes;
    int max_rows;
    int max_logits_rows;  // 0: entries only
    bool branches;        // may begin at its drafts
  };
  void propose_at_once(Queue& queue, const DraftStep& step, const DraftShape& shape);
  void run_first(const Pass& pass);
  void run_later(const Pass& pass);
  void forward(const Pass& pass, int module, const DraftHead::Source& source);
  void draw(const Pass& pass, int module);
  OutputMatrix matrix(int module) const {
    return output_matrix_of(head_->head(module), head_->config().layer);
  }

  const char* const name_;
  Device& device_;
  Model& target_;
  const DrafterTraits traits_;
  const bool probabilistic_;
  const bool masked_;
  const bool branches_;
  const std::unique_ptr<DraftHead> head_;
  const int num_modules_;
  DraftPasses passes_;
  std::optional<BlockPass> block_;  // of all drafts at once
  TapPages taps_;
  ModuleStates modules_;
  std::optional<DraftOutput> output_;
  std::unique_ptr<KvCache> cache_;
};

Status HeadDrafter::take_scratch() {
  FT_RETURN_IF_ERROR(passes_.take({.token_map = nullptr,
                                   .first_entry = 1,
                                   .max_len = traits_.max_len,
                                   .keeps_written = traits_.keeps_written,
                                   .branches = branches_}));
  FT_RETURN_IF_ERROR(modules_.take_rows(passes_.max_rows()));
  if (block_) FT_RETURN_IF_ERROR(block_->take());
  DraftOutput::Sizes sizes{
      .max_logits_rows = block_ ? block_->max_logits_rows() : passes_.max_logits_rows(),
      .target_vocab = target_.config().vocab_size,
      .probabilistic = probabilistic_,
      .masked = masked_ && !block_,
      .branching_rows = branches_ ? passes_.max_rows() : 0};
  for (int module = 0; module < num_modules_; ++module) {
    sizes.matrix_rows = std::max(sizes.matrix_rows, matrix(module).rows);
    sizes.mapped |= matrix(module).id_map != nullptr;
    sizes.cut |= matrix(module).sharding.is_cut();
  }
  output_.emplace(device_, sizes);
  return output_->take();
}

Status HeadDrafter::take_memory(int num_blocks, int block_size) {
  FT_CHECK(cache_ == nullptr);
  FT_RETURN_IF_ERROR(taps_.take(num_blocks, block_size));
  FT_RETURN_IF_ERROR(modules_.take_pages(num_blocks, block_size));
  FT_ASSIGN_OR_RETURN(cache_, KvCache::create(device_, head_->kv_group(), num_blocks, block_size));
  cache_->prefer_small_fronts(device_);
  return {};
}

std::vector<BlockPart> HeadDrafter::block_parts() const {
  std::vector<BlockPart> parts = cache_->block_parts();
  parts.push_back(taps_.block_part());
  for (const BlockPart& part : modules_.block_parts()) parts.push_back(part);
  return parts;
}

void HeadDrafter::propose(Queue& queue, const DraftStep& step, const DraftShape& shape) {
  FT_CHECK(cache_ != nullptr);
  if (block_) return propose_at_once(queue, step, shape);
  passes_.enqueue(queue, step, shape,
                  [&](int number, const DraftTensors& tensors, int max_rows, int max_logits_rows) {
                    const Pass pass{queue,
                                    step,
                                    tensors,
                                    number,
                                    shape.num_draft_tokens,
                                    max_rows,
                                    max_logits_rows,
                                    shape.num_branches > 0};
                    number == 0 ? run_first(pass) : run_later(pass);
                  });
}

// The last known token is computed again with the masks behind it, so that all drafts lie in one
// pass. Without the masks of grammars: drafts that one refuses are repaired behind the drafter.
void HeadDrafter::propose_at_once(Queue& queue, const DraftStep& step, const DraftShape& shape) {
  const DraftShape known{.num_draft_tokens = 0,
                         .max_catch_up_rows = shape.max_catch_up_rows,
                         .max_spans = shape.max_spans};
  passes_.enqueue(queue, step, known, [&](int, const DraftTensors& tensors, int max_rows, int) {
    head_->forward(queue, 0, tensors, step.batch, *cache_, taps_.source(), max_rows);
    if (shape.num_draft_tokens == 0) return;
    DraftStep unmasked = step;
    unmasked.masks = {};
    const int max_logits_rows = shape.max_spans * shape.num_draft_tokens;
    const int block_rows = block_->lay_out(queue, step, shape, tensors);
    head_->forward(queue, 0, block_->tensors(), step.batch, *cache_, head_->block_source(),
                   block_rows);
    const void* states = head_->head_input(queue, block_->tensors(), max_logits_rows, false);
    output_->draw(queue, matrix(0), states, {block_->drawn(), max_logits_rows}, unmasked);
    block_->take_drafts(queue, step, max_logits_rows);
  });
}

// Exact entries of every module: module m reads the pages of module m - 1, which hold the rows of
// this pass too. The first draft is chosen while the states are those of the first module.
void HeadDrafter::run_first(const Pass& pass) {
  const StepTensors& rows = pass.tensors.rows;
  forward(pass, 0, taps_.source());
  if (pass.max_logits_rows > 0) draw(pass, 0);
  for (int module = 1; module < num_modules_; ++module) {
    modules_.keep_page(pass.queue, module - 1, head_->states(), rows, pass.max_rows);
    if (pass.num_passes > 1) {
      modules_.keep_rows(pass.queue, module - 1, head_->states(), rows, pass.max_rows);
    }
    forward(pass, module,
            {.rows = modules_.pages(module - 1),
             .dtype = modules_.page_dtype(),
             .tapped = false,
             .are_parts = taps_.are_parts()});
  }
}

// Modules from the last one down, so that each reads the pass before's states of the module below
// it before that module's new ones replace them; the one that drafts comes last. Beyond the modules
// the last one goes on with its own states.
void HeadDrafter::run_later(const Pass& pass) {
  const int drafting = std::min(pass.number, num_modules_ - 1);
  if (pass.number >= num_modules_) {
    forward(pass, drafting, {.rows = head_->states(), .dtype = DType::kF32, .tapped = false});
  } else {
    for (int module = std::min(num_modules_, pass.num_passes) - 1; module >= drafting; --module) {
      forward(pass, module,
              {.rows = modules_.rows(module - 1), .dtype = DType::kF32, .tapped = false});
      if (module + 1 < num_modules_) {
        modules_.keep_rows(pass.queue, module, head_->states(), pass.tensors.rows, pass.max_rows);
      }
    }
  }
  draw(pass, drafting);
}

void HeadDrafter::forward(const Pass& pass, int module, const DraftHead::Source& source) {
  head_->forward(pass.queue, module, pass.tensors, pass.step.batch, *cache_, source, pass.max_rows);
}

void HeadDrafter::draw(const Pass& pass, int module) {
  // A pass after the first has one row a slot, which drafts.
  const void* states =
      head_->head_input(pass.queue, pass.tensors, pass.max_logits_rows, pass.number > 0);
  output_->draw(pass.queue, matrix(module), states,
                {pass.tensors.rows, pass.max_logits_rows,
                 pass.branches ? pass.tensors.alternatives : nullptr},
                pass.step);
}

// How many drafts the configuration asks for, by vLLM's rules for MTP, or else the files.
Result<int> num_draft_tokens(const SpeculativeConfig& config, const DraftHeadConfig& head) {
  const int wanted = config.num_speculative_tokens;
  if (!head.traits().of_target) {
    if (wanted > 0) return wanted;
    if (head.proposed_drafts > 0) return std::min(head.proposed_drafts, kMaxOwnDrafts);
    return invalid_argument(
        "speculative config: num_speculative_tokens is 0 or not given, and the head's files "
        "propose none; give a number from 1 to " +
        std::to_string(kMaxDraftTokens));
  }
  if (wanted == 0) return std::min(head.num_modules, kMaxOwnDrafts);
  const int beyond = wanted % head.num_modules;
  if (wanted > head.num_modules && beyond != 0) {
    return invalid_argument("speculative config: num_speculative_tokens is " +
                            std::to_string(wanted) + ", but beyond the " +
                            std::to_string(head.num_modules) +
                            " MTP modules of the model it must be divisible by their number, "
                            "such as " +
                            std::to_string(wanted - beyond));
  }
  return wanted;
}

}  // namespace

Result<std::unique_ptr<Drafter>> make_head_drafter(const DrafterContext& context, HeadKind kind,
                                                   const char* name) {
  const ModelConfig& target = context.target.config();
  ConfigOptions options;
  options.dtype = dtype_name(target.dtype);
  FT_ASSIGN_OR_RETURN(DraftHeadConfig config,
                      read_draft_head_config(context.folder, kind, target, options));
  FT_ASSIGN_OR_RETURN(const int drafts, num_draft_tokens(context.config, config));
  FT_ASSIGN_OR_RETURN(const int max_len, draft_max_len(context, config.layer.max_context));
  FT_ASSIGN_OR_RETURN(const bool probabilistic, samples_drafts(context.config));
  DrafterTraits traits = declared_traits(name);
  traits.max_draft_tokens = drafts;
  traits.max_len = max_len;
  const bool at_once = config.traits().learns_masks;
  if (at_once) {
    traits.entries_ahead = drafts - 1;
    traits.branches = false;
  }
  const int drafting_rows = context.max_spans * (at_once ? drafts : 1);
  if (context.is_absent) return make_absent_drafter(name, traits);
  const bool follows_target = config.traits().of_target && context.config.quantization.empty();
  // A module beyond the drafts would never be asked.
  config.num_modules = std::min(config.num_modules, drafts);
  DraftHeadOptions of_head = head_options(
      context, max_len,
      {.of_pass = std::max(context.max_rows, drafting_rows), .of_logits = drafting_rows});
  of_head.sharding = sharding_of_drafter(config.layer, context.sharding);
  if (follows_target) of_head.rounding = context.rounding;
  FT_ASSIGN_OR_RETURN(
      auto head, load_draft_head(context.device, context.folder, config, context.target, of_head));
  auto drafter =
      std::make_unique<HeadDrafter>(name, context, std::move(head), traits, probabilistic);
  FT_RETURN_IF_ERROR(drafter->take_scratch());
  return std::unique_ptr<Drafter>(std::move(drafter));
}

}  // namespace foretoken
