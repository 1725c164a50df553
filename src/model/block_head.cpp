#include "model/block_head.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "device/arena.h"
#include "kernels/comm/context_exchange.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/move_rows.h"
#include "model/draft_head_weights.h"
#include "model/stack/layer_runner.h"

namespace foretoken {
namespace {

class Block final : public BlockHead {
 public:
  // `part`: of this rank's layers.
  Block(Device& device, const DraftHeadConfig& config, const ModelConfig& part, Model& target,
        const DraftHeadOptions& options)
      : device_(device),
        config_(config),
        part_(part),
        target_(target),
        max_logits_rows_(options.max_logits_rows),
        max_rows_(options.max_rows),
        weight_arena_(device, MemoryKind::kDevice),
        scratch_arena_(device, MemoryRole::kScratch),
        kv_format_(options.kv_format),
        context_(options.sharding.context),
        states_ranks_(options.states),
        layers_(device, part_, *options.attention, options.max_rows, options.sharding) {}

  Status load(const std::string& folder, const DraftHeadOptions& options);
  Status take_scratch();

  const DraftHeadConfig& config() const override { return config_; }
  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t scratch_bytes() const override {
    return static_cast<int64_t>(scratch_arena_.bytes_taken());
  }
  KvGroupSpec kv_group() const override {
    KvGroupSpec group = kv_layout(std::get<Gqa>(whole().layer.mixer).spec, part_.dtype, kv_format_);
    group.num_layers = config_.num_modules;
    group.context_size = context_.size;
    group.context_rank = context_.rank;
    return group;
  }
  void catch_up(Queue& queue, const DraftTensors& tensors, const BatchState& batch,
                const KvCache& cache, const DraftHead::Source& taps, int32_t max_rows) override;
  void forward(Queue& queue, const DraftTensors& tensors, const int32_t* last_seen,
               const BatchState& batch, const KvCache& cache, int32_t max_rows) override;
  const void* head_input(Queue& queue, const DraftTensors& tensors, int32_t max_rows) override;
  DraftHead::Head head() const override { return whole().head; }
  Markov markov() const override;

 private:
  void take_taps(const LayerRows& rows, const DraftTensors& tensors, const DraftHead::Source& taps);
  LayerKv kv_of(int32_t layer, const DraftTensors& tensors, const BatchState& batch,
                const KvCache& cache) const;
  const DecoderLayer& layer(int32_t index) const {
    return weights_.modules.at(static_cast<size_t>(index)).layer;
  }
  // What stands before and behind the layers.
  const DraftModuleWeights& whole() const { return weights_.modules.front(); }
  int32_t tap_width() const {
    return static_cast<int32_t>(config_.tap_layers.size()) * target_.config().hidden_size;
  }

  Device& device_;
  const DraftHeadConfig config_;
  const ModelConfig part_;
  Model& target_;
  const int32_t max_logits_rows_;
  const int32_t max_rows_;
  Arena weight_arena_;
  Arena scratch_arena_;
  int64_t weight_bytes_ = 0;
  DeviceRope rope_;
  DraftHeadWeights weights_;
  const KvFormat kv_format_;
  const ContextRanks context_;
  const ContextRanks states_ranks_;
  LayerRunner layers_;
  // "act" stands for the type of the layers.
  void* joined_ = nullptr;  // [max_rows, tap width] of the target's type: parts of several ranks
  void* taps_ = nullptr;    // [max_rows, tap width] act
  float* state_ = nullptr;  // [max_rows, hidden]
  void* context_rows_ = nullptr;  // [max_rows, hidden] act: what layers make entries of
  void* head_input_ = nullptr;    // [max_logits_rows, hidden] act
};

Status Block::load(const std::string& folder, const DraftHeadOptions& options) {
  FT_ASSIGN_OR_RETURN(
      LoadedDraftHead loaded,
      load_draft_head_folder(weight_arena_, folder, {device_, config_, options, target_}));
  rope_ = loaded.rope;
  weights_ = std::move(loaded.weights);
  weight_bytes_ = loaded.weight_bytes;
  return {};
}

BlockHead::Markov Block::markov() const {
  if (config_.added_rank() == 0) return {};
  Markov all{.embedding = whole().markov_embedding,
             .output = &whole().added,
             .confidence = config_.has_confidence ? &whole().confidence : nullptr};
  if (config_.gru_size == 0) return all;
  all.embedding = whole().embedding;
  all.gru = {&whole().gru_input, &whole().gru_state, &whole().gru_features};
  all.plain_drafts = config_.plain_drafts;
  all.embedding_scale = config_.embedding_scale;
  return all;
}

Status Block::take_scratch() {
  const char* what = "the draft head's scratch (lower --max-num-batched-tokens)";
  const auto rows = static_cast<size_t>(max_rows_);
  const auto hidden = static_cast<size_t>(config_.layer.hidden_size);
  const auto taps = static_cast<size_t>(tap_width());
  const size_t act = dtype_size(config_.layer.dtype);
  Arena& arena = scratch_arena_;
  for (const DraftModuleWeights& module : weights_.modules) layers_.fit(module.layer);
  FT_RETURN_IF_ERROR(layers_.take_scratch(arena));
  FT_ASSIGN_OR_RETURN(taps_, arena.take(rows * taps * act, what));
  FT_ASSIGN_OR_RETURN(state_, arena.take_array<float>(rows * hidden, what));
  FT_ASSIGN_OR_RETURN(context_rows_, arena.take(rows * hidden * act, what));
  if (states_ranks_.are_several()) {
    FT_ASSIGN_OR_RETURN(joined_,
                        arena.take(rows * taps * dtype_size(target_.config().dtype), what));
  }
  FT_ASSIGN_OR_RETURN(head_input_,
                      arena.take(static_cast<size_t>(max_logits_rows_) * hidden * act, what));
  return {};
}

LayerKv Block::kv_of(int32_t layer, const DraftTensors& tensors, const BatchState& batch,
                     const KvCache& cache) const {
  return {.kv = cache.layer(layer),
          .kv_slot = tensors.rows.kv_slot,
          .block_tables = batch.block_tables,
          .max_blocks = batch.max_blocks,
          .rope = rope_,
          .window = config_.layer.layers.at(static_cast<size_t>(layer)).window,
          .kv_begin = 1,
          .position_shift = -1};
}

// The rows' taps, side by side, in the type of the layers.
void Block::take_taps(const LayerRows& rows, const DraftTensors& tensors,
                      const DraftHead::Source& taps) {
  const void* in = taps.rows;
  const int32_t* from = tensors.source;
  if (taps.are_parts) {
    const int32_t part = target_.config().hidden_size / states_ranks_.size;
    gather_parts(rows.queue, {.counts = rows.counts,
                              .in = in,
                              .from = from,
                              .out = joined_,
                              .ranks = states_ranks_,
                              .max_rows = rows.max_rows,
                              .pieces = static_cast<int32_t>(config_.tap_layers.size()),
                              .piece_bytes = part * static_cast<int32_t>(dtype_size(taps.dtype))});
    in = joined_;
    from = nullptr;
  }
  move_rows(rows.queue, {.counts = rows.counts,
                         .in = in,
                         .out = taps_,
                         .from = from,
                         .to = nullptr,
                         .row_kind = RowKind::kToken,
                         .max_rows = rows.max_rows,
                         .width = tap_width(),
                         .out_stride = tap_width(),
                         .out_offset = 0,
                         .in_dtype = taps.dtype,
                         .out_dtype = config_.layer.dtype});
}

void Block::catch_up(Queue& queue, const DraftTensors& tensors, const BatchState& batch,
                     const KvCache& cache, const DraftHead::Source& taps, int32_t max_rows) {
  FT_CHECK(max_rows > 0 && max_rows <= max_rows_);
  FT_CHECK(taps.rows != nullptr && taps.tapped && cache.spec() == kv_group());
  const StepTensors& step = tensors.rows;
  const LayerRows rows{queue, step.counts, step.positions, step.row_slot, max_rows};
  take_taps(rows, tensors, taps);
  multiply(rows, taps_, whole().fc, {state_}, config_.layer.dtype);
  norm_rows(rows, state_, nullptr, whole().state_norm, layers_.norm_size(),
            {context_rows_, config_.layer.dtype});
  for (int32_t i = 0; i < config_.num_modules; ++i) {
    layers_.keep_entries(rows, kv_of(i, tensors, batch, cache), layer(i), context_rows_);
  }
}

void Block::forward(Queue& queue, const DraftTensors& tensors, const int32_t* last_seen,
                    const BatchState& batch, const KvCache& cache, int32_t max_rows) {
  FT_CHECK(max_rows > 0 && max_rows <= max_rows_);
  FT_CHECK(last_seen != nullptr && cache.spec() == kv_group());
  const StepTensors& step = tensors.rows;
  const LayerRows rows{queue, step.counts, step.positions, step.row_slot, max_rows};
  embed(queue, {.counts = step.counts,
                .token_ids = step.token_ids,
                .table = whole().embedding,
                .out = layers_.residual(),
                .max_rows = max_rows,
                .vocab = config_.layer.vocab_size,
                .hidden = config_.layer.hidden_size,
                .dtype = config_.layer.dtype,
                .scale = config_.embedding_scale});
  layers_.enter(rows, nullptr, layer(0));
  const float* delta = nullptr;
  const void* x = layers_.normed();
  for (int32_t i = 0; i < config_.num_modules; ++i) {
    const DecoderLayer* next = i + 1 < config_.num_modules ? &layer(i + 1) : nullptr;
    LayerKv kv = kv_of(i, tensors, batch, cache);
    if (!config_.is_causal.at(static_cast<size_t>(i))) kv.attends_from = last_seen;
    delta = layers_.run(rows, kv, layer(i), x, next);
    x = nullptr;
  }
  layers_.add_and_norm(rows, delta, whole().output_norm);
}

const void* Block::head_input(Queue& queue, const DraftTensors& tensors, int32_t max_rows) {
  FT_CHECK(max_rows > 0 && max_rows <= max_logits_rows_);
  const ModelConfig& sizes = config_.layer;
  move_rows(queue, {.counts = tensors.rows.counts,
                    .in = layers_.normed(),
                    .out = head_input_,
                    .from = tensors.rows.logits_rows,
                    .to = nullptr,
                    .row_kind = RowKind::kLogits,
                    .max_rows = max_rows,
                    .width = sizes.hidden_size,
                    .out_stride = sizes.hidden_size,
                    .out_offset = 0,
                    .in_dtype = sizes.dtype,
                    .out_dtype = sizes.dtype});
  return head_input_;
}

}  // namespace

Result<std::unique_ptr<BlockHead>> load_block_head(Device& device, const std::string& folder,
                                                   const DraftHeadConfig& config, Model& target,
                                                   const DraftHeadOptions& options) {
  FT_CHECK(config.traits().drafts_blocks() && config.num_modules > 0);
  FT_ASSIGN_OR_RETURN(auto head, load_head_as<Block>(device, folder, config, target, options));
  return std::unique_ptr<BlockHead>(std::move(head));
}

}  // namespace foretoken
