#include "draft/draft_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compat/compat.h"
#include "draft/block_pass.h"
#include "draft/draft_bounds.h"
#include "draft/draft_output.h"
#include "draft/draft_passes.h"
#include "draft/parts/absent_drafter.h"
#include "draft/parts/device_ids.h"
#include "kernels/comm/collectives.h"
#include "model/draft_head.h"
#include "model/layer/layer_spec.h"
#include "model/registry.h"
#include "model/weights/weight_loader.h"

namespace foretoken {
namespace {

// The rows of the draft model's output matrix that are used, and the target id of each.
struct UsedRows {
  std::vector<int32_t> rows;        // empty: all
  std::vector<int32_t> target_ids;  // empty: rows are target ids
};

// Target id of each row of the whole matrix, -1 where there is none.
std::vector<int32_t> target_ids_of_rows(const DrafterContext& context, int32_t draft_vocab) {
  const int32_t target_vocab = context.target.config().vocab_size;
  std::vector<int32_t> ids(static_cast<size_t>(draft_vocab), -1);
  for (int32_t row = 0; row < draft_vocab; ++row) {
    const auto at = static_cast<size_t>(row);
    if (context.token_map_back.empty()) {
      ids[at] = row;
    } else if (at < context.token_map_back.size()) {
      ids[at] = context.token_map_back[at];
    }
    if (ids[at] >= target_vocab) ids[at] = -1;
  }
  return ids;
}

UsedRows used_rows(const DrafterContext& context, int32_t draft_vocab) {
  UsedRows used;
  const std::vector<int32_t> all = target_ids_of_rows(context, draft_vocab);
  if (context.draft_vocab_ids.empty()) {
    if (!context.token_map_back.empty() || draft_vocab > context.target.config().vocab_size) {
      used.target_ids = all;
    }
    return used;
  }
  std::vector<bool> wanted(static_cast<size_t>(context.target.config().vocab_size));
  for (const int32_t id : context.draft_vocab_ids) wanted.at(static_cast<size_t>(id)) = true;
  for (int32_t row = 0; row < draft_vocab; ++row) {
    const int32_t id = all[static_cast<size_t>(row)];
    if (id < 0 || !wanted[static_cast<size_t>(id)]) continue;
    used.rows.push_back(row);
    used.target_ids.push_back(id);
  }
  return used;
}

Result<PackedWeight> load_rows(const DrafterContext& context, const ModelConfig& config,
                               const std::vector<int32_t>& rows) {
  if (!context.dummy) return load_head_rows(context.device, context.folder, config, rows);
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t bytes = count * config.hidden_size * static_cast<int64_t>(dtype_size(config.dtype));
  FT_ASSIGN_OR_RETURN(const auto loader, WeightLoader::create(context.device, nullptr, config.dtype,
                                                              bytes, {}, nullptr));
  const TensorPart part[] = {{"lm_head.weight", count}};
  FT_ASSIGN_OR_RETURN(PackedWeight matrix, loader->matrix(part, config.hidden_size));
  FT_RETURN_IF_ERROR(loader->finish());
  return matrix;
}

class DraftModelDrafter final : public Drafter {
 public:
  // mask_id: negative where drafts come one after the other.
  DraftModelDrafter(const char* name, const DrafterContext& context, std::unique_ptr<Model> model,
                    const DrafterTraits& traits, bool probabilistic, int32_t mask_id)
      : name_(name),
        device_(context.device),
        traits_(traits),
        probabilistic_(probabilistic),
        target_vocab_(context.target.config().vocab_size),
        state_use_{.num_slots = context.max_spans, .max_draft_tokens = traits.max_draft_tokens},
        model_(std::move(model)),
        ids_(context.device, MemoryKind::kDevice),
        passes_(context.device, context.max_rows, context.max_spans) {
    if (mask_id < 0) return;
    block_.emplace(context.device, context.max_spans,
                   BlockPass::Rules{.mask_id = mask_id,
                                    .rows = traits.max_draft_tokens,
                                    .max_draft_tokens = traits.max_draft_tokens,
                                    .first_entry = 0});
  }

  Status load(const DrafterContext& context);

  const char* name() const override { return name_; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int block_size) const override {
    return kv_bytes_per_block(model_->kv_groups().front(), block_size);
  }
  Status take_memory(int num_blocks, int block_size) override {
    FT_ASSIGN_OR_RETURN(
        cache_, KvCache::create(device_, model_->kv_groups().front(), num_blocks, block_size));
    cache_->prefer_small_fronts(device_);
    return {};
  }
  std::vector<BlockPart> block_parts() const override { return cache_->block_parts(); }
  std::vector<BlockPart> state_parts() const override { return model_->state_parts(); }
  int64_t memory_bytes() const override {
    const int64_t rows = reduced_.get() == nullptr ? 0 : matrix_.rows;
    return model_->weight_bytes() + model_->scratch_bytes() + model_->state_bytes(state_use_) +
           passes_.bytes() + output_->bytes() + static_cast<int64_t>(ids_.bytes_taken()) +
           (block_ ? block_->bytes() : 0) +
           rows * matrix_.hidden * static_cast<int64_t>(dtype_size(matrix_.dtype));
  }
  const KvCache* kv_cache() const override { return cache_.get(); }

  void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) override {
    FT_CHECK(cache_ != nullptr);
    if (block_) return propose_at_once(queue, step, shape);
    const KvCaches caches{cache_.get(), nullptr};
    passes_.enqueue(queue, step, shape,
                    [&](int, const DraftTensors& tensors, int max_rows, int max_logits_rows) {
                      model_->forward(queue, tensors.rows, step.batch, caches, {max_rows});
                      if (max_logits_rows == 0) return;
                      const void* states =
                          model_->head_input(queue, tensors.rows, 0, max_logits_rows);
                      output_->draw(queue, matrix_, states,
                                    {tensors.rows, max_logits_rows,
                                     shape.num_branches > 0 ? tensors.alternatives : nullptr},
                                    step);
                    });
  }

 private:
  Status load_matrix(const DrafterContext& context);
  void propose_at_once(Queue& queue, const DraftStep& step, const DraftShape& shape);

  const char* const name_;
  Device& device_;
  const DrafterTraits traits_;
  const bool probabilistic_;
  const int32_t target_vocab_;
  const StateUse state_use_;
  const std::unique_ptr<Model> model_;
  Arena ids_;
  PackedWeight reduced_;
  OutputMatrix matrix_;
  DraftPasses passes_;
  std::optional<BlockPass> block_;  // of all drafts at once
  std::optional<DraftOutput> output_;
  std::unique_ptr<KvCache> cache_;
};

// The block computes the last known token once more, so that its own row drafts as the masks do.
void DraftModelDrafter::propose_at_once(Queue& queue, const DraftStep& step,
                                        const DraftShape& shape) {
  const KvCaches caches{cache_.get(), nullptr};
  const DraftShape known{.num_draft_tokens = 0,
                         .max_catch_up_rows = shape.max_catch_up_rows,
                         .max_spans = shape.max_spans};
  passes_.enqueue(queue, step, known, [&](int, const DraftTensors& tensors, int max_rows, int) {
    model_->forward(queue, tensors.rows, step.batch, caches, {max_rows});
    if (shape.num_draft_tokens == 0) return;
    DraftStep unmasked = step;
    unmasked.masks = {};
    const int max_logits_rows = shape.max_spans * shape.num_draft_tokens;
    const int block_rows = block_->lay_out(queue, step, shape, tensors);
    const StepTensors& rows = block_->tensors().rows;
    model_->forward(queue, rows, step.batch, caches, {block_rows});
    const void* states = model_->head_input(queue, rows, 0, max_logits_rows);
    output_->draw(queue, matrix_, states, {block_->drawn(), max_logits_rows}, unmasked);
    block_->take_drafts(queue, step, max_logits_rows);
  });
}

Status DraftModelDrafter::load_matrix(const DrafterContext& context) {
  const ModelConfig& config = model_->config();
  const UsedRows used = used_rows(context, config.vocab_size);
  matrix_ = {.weight = model_->shared_head().weight,
             .rows = config.vocab_size,
             .hidden = config.hidden_size,
             .dtype = config.dtype,
             .softcap = config.logits_softcap,
             .sharding = context.sharding};
  if (!context.draft_vocab_ids.empty()) {
    if (used.rows.empty()) {
      return invalid_argument("speculative config: the draft model " + context.folder +
                              " has none of the draft_vocab_size tokens; raise it or leave it out");
    }
    const Sharding& sharding = context.sharding;
    const ColumnPart own =
        column_part(static_cast<int32_t>(used.rows.size()), sharding.rank, sharding.size);
    const auto first = used.rows.begin() + own.begin;
    FT_ASSIGN_OR_RETURN(reduced_, load_rows(context, config, {first, first + own.count}));
    matrix_.weight = reduced_.get();
    matrix_.rows = static_cast<int32_t>(used.rows.size());
  }
  FT_ASSIGN_OR_RETURN(matrix_.id_map,
                      upload_ids(device_, ids_, used.target_ids, "the draft vocabulary"));
  return {};
}

Status DraftModelDrafter::load(const DrafterContext& context) {
  FT_RETURN_IF_ERROR(model_->take_states(state_use_));
  FT_RETURN_IF_ERROR(load_matrix(context));
  FT_ASSIGN_OR_RETURN(const int32_t* token_map,
                      upload_ids(device_, ids_, context.token_map, "the token map"));
  const bool branches = traits_.branches && context.config.num_branches > 0;
  FT_RETURN_IF_ERROR(passes_.take({.token_map = token_map,
                                   .first_entry = 0,
                                   .max_len = traits_.max_len,
                                   .keeps_written = traits_.keeps_written,
                                   .in_order = traits_.keeps_states,
                                   .branches = branches}));
  if (block_) FT_RETURN_IF_ERROR(block_->take());
  const int32_t logits_rows = block_ ? block_->max_logits_rows() : passes_.max_logits_rows();
  output_.emplace(device_, DraftOutput::Sizes{.max_logits_rows = logits_rows,
                                              .matrix_rows = matrix_.rows,
                                              .target_vocab = target_vocab_,
                                              .probabilistic = probabilistic_,
                                              .mapped = matrix_.id_map != nullptr,
                                              .masked = context.with_grammars && !block_,
                                              .cut = context.sharding.is_cut(),
                                              .branching_rows = branches ? passes_.max_rows() : 0});
  return output_->take();
}

Result<std::unique_ptr<Drafter>> make_model_drafter(const DrafterContext& context, const char* name,
                                                    int32_t mask_id) {
  LoadOptions options;
  options.config.dtype = dtype_name(context.target.config().dtype);
  options.config.is_drafters = true;
  FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(context.folder, options.config));
  FT_ASSIGN_OR_RETURN(const int max_len, draft_max_len(context, config.max_context));
  FT_ASSIGN_OR_RETURN(const bool probabilistic, samples_drafts(context.config));
  DrafterTraits traits = declared_traits(name);
  traits.max_draft_tokens = context.config.num_speculative_tokens;
  traits.max_len = max_len;
  const bool at_once = mask_id >= 0;
  traits.keeps_states = keeps_states(config);
  FT_RETURN_IF_ERROR(compat({.keeps_states = traits.keeps_states,
                             .architecture = config.architecture,
                             .branches = context.config.num_branches > 0}));
  if (at_once) traits.entries_ahead = traits.max_draft_tokens - 1;
  if (context.is_absent) return make_absent_drafter(name, traits);
  const int drafting_rows = context.max_spans * (at_once ? traits.max_draft_tokens : 1);
  options.load_format = context.dummy ? LoadFormat::kDummy : LoadFormat::kAuto;
  options.dummy_recipe = context.dummy_recipe;
  options.max_model_len = max_len;
  options.max_rows = std::max(context.max_rows, drafting_rows);
  options.max_logits_rows = drafting_rows;
  options.one_kv_group = true;
  options.kv_format = context.kv_format;
  options.rounding = context.own_rounding;
  options.attention = context.attention;
  options.sharding = sharding_of_drafter(config, context.sharding);
  FT_ASSIGN_OR_RETURN(auto model, load_model(context.device, context.folder, options));
  FT_CHECK(model->kv_groups().size() == 1);
  auto drafter = std::make_unique<DraftModelDrafter>(name, context, std::move(model), traits,
                                                     probabilistic, mask_id);
  FT_RETURN_IF_ERROR(drafter->load(context));
  return std::unique_ptr<Drafter>(std::move(drafter));
}

}  // namespace

Result<std::unique_ptr<Drafter>> make_draft_model_drafter(const DrafterContext& context) {
  return make_model_drafter(context, "draft_model", -1);
}

Result<std::unique_ptr<Drafter>> make_parallel_model_drafter(const DrafterContext& context,
                                                             const char* name, int32_t mask_id) {
  FT_CHECK(mask_id >= 0);
  return make_model_drafter(context, name, mask_id);
}

}  // namespace foretoken
