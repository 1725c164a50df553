#include "model/draft_head.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"
#include "device/arena.h"
#include "kernels/comm/context_exchange.h"
#include "kernels/draft/pair_rows.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/move_rows.h"
#include "model/draft_head_weights.h"
#include "model/stack/layer_runner.h"

namespace foretoken {
namespace {

// What a mixer was loaded as.
MixerSpec spec_of(const Mixer& mixer) {
  return std::visit(
      [](const auto& part) -> MixerSpec {
        if constexpr (std::is_same_v<std::decay_t<decltype(part)>, Absent>) {
          return part;
        } else {
          return part.spec;
        }
      },
      mixer);
}

class Head final : public DraftHead {
 public:
  // `part`: of this rank's layers.
  Head(Device& device, const DraftHeadConfig& config, const ModelConfig& part, Model& target,
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
    KvGroupSpec group = kv_layout(spec_of(weights_of(0).layer.mixer), part_.dtype, kv_format_);
    group.num_layers = config_.num_modules * config_.num_layers;
    if (group.index.num_layers > 0) group.index.num_layers = group.num_layers;
    group.context_size = context_.size;
    group.context_rank = context_.rank;
    return group;
  }
  void forward(Queue& queue, int32_t module, const DraftTensors& tensors, const BatchState& batch,
               const KvCache& cache, const Source& source, int32_t max_rows) override;
  Source block_source() const override { return {.rows = known_, .dtype = DType::kF32}; }
  int32_t mask_source() const override { return max_rows_; }
  const float* states() const override {
    if (streams_ != nullptr) return streams_->rows();
    return config_.norm_output ? normed_states_ : layers_.residual();
  }
  const void* head_input(Queue& queue, const DraftTensors& tensors, int32_t max_rows,
                         bool every_row) override;
  DraftHead::Head head(int32_t module) const override { return weights_of(module).head; }

 private:
  // What the ops of one forward have in common.
  struct Pass {
    const DraftTensors& tensors;
    const Source source;
    const int32_t* from;  // which row of it belongs to each row; null: that row
    const LayerRows rows;
    const DraftModuleWeights& weights;
  };

  // What the layer's attention reads, while its residual is set.
  const void* enter(const Pass& pass);
  const void* enter_paired(const Pass& pass);
  const void* enter_streams(const Pass& pass);
  const float* run_layers(const Pass& pass, int32_t module, LayerKv kv, const KvCache& cache,
                          const void* x);
  void chain(const Pass& pass, int32_t module);
  Status project_mask();
  Source join_parts(const LayerRows& rows, const Source& source, const int32_t* from);
  void take_taps(const Pass& pass);
  void norm_tap(const Pass& pass, int32_t tap, const Norm& norm);
  void pair(const Pass& pass, const Source& source, const int32_t* from);
  struct RowsIn {
    const void* rows;
    const int32_t* index;
    DType dtype;
    int32_t width;
    int32_t stride = 0;  // 0: width
  };
  struct RowsOut {
    void* rows;
    DType dtype;
    int32_t stride = 0;  // 0: the width of what comes in
    int32_t offset = 0;
  };
  void move(const Pass& pass, const RowsIn& in, const RowsOut& out);
  const DraftModuleWeights& weights_of(int32_t module) const {
    return weights_.modules.at(static_cast<size_t>(module));
  }
  // Width of the tap rows.
  int32_t tap_width() const {
    return static_cast<int32_t>(config_.tap_layers.size()) * target_.config().hidden_size;
  }
  // Of a state that is kept of each position: of all streams, where there are several.
  int32_t kept_width() const { return target_.config().hidden_size * config_.layer.hyper.count; }

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
  HyperStreams* streams_ = nullptr;  // of the module that ran last, where it has several
  const KvFormat kv_format_;
  const ContextRanks context_;
  const ContextRanks states_ranks_;
  LayerRunner layers_;
  // "act" stands for the type of the layer.
  void* taps_ = nullptr;  // [max_rows, tap width] act; of EAGLE-3
  // [max_rows, hidden] what the rows pair with; of EAGLE-3 and of heads of several streams.
  float* state_ = nullptr;
  float* known_ = nullptr;  // [max_rows + 1, hidden] of tapped rows, and of masks; of P-EAGLE
  // Of EAGLE-3.1:
  float* raw_taps_ = nullptr;       // [max_rows, tap width], or [max_rows, target's hidden]
  void* normed_tap_ = nullptr;      // [max_rows, target's hidden] act
  float* normed_states_ = nullptr;  // [max_rows, hidden]
  void* paired_ = nullptr;          // [max_rows, 2 * hidden] act
  void* entered_ = nullptr;         // [max_rows, hidden] act; of EAGLE
  // [max_rows, width of the taps, or a state] of the target's type: parts that have come together.
  void* joined_ = nullptr;
  void* head_input_ = nullptr;  // [max_logits_rows, hidden] act
};

Status Head::load(const std::string& folder, const DraftHeadOptions& options) {
  FT_ASSIGN_OR_RETURN(
      LoadedDraftHead loaded,
      load_draft_head_folder(weight_arena_, folder, {device_, config_, options, target_}));
  rope_ = loaded.rope;
  weights_ = std::move(loaded.weights);
  weight_bytes_ = loaded.weight_bytes;
  if (!turns_rows(weights_of(0).layer)) rope_ = {};
  return {};
}

Status Head::take_scratch() {
  const char* what = "the draft head's scratch (lower --max-num-batched-tokens)";
  const auto rows = static_cast<size_t>(max_rows_);
  const auto hidden = static_cast<size_t>(config_.layer.hidden_size);
  const size_t act = dtype_size(config_.layer.dtype);
  Arena& arena = scratch_arena_;
  const ScratchSource source{device_, layers_.attention(), arena, config_.layer.dtype, max_rows_};
  for (DraftModuleWeights& module : weights_.modules) {
    layers_.fit(module.layer);
    for (const DecoderLayer& layer : module.deeper) layers_.fit(layer);
    FT_RETURN_IF_ERROR(module.streams.take_scratch(source));
  }
  FT_RETURN_IF_ERROR(layers_.take_scratch(arena));
  FT_ASSIGN_OR_RETURN(paired_, arena.take(rows * 2 * hidden * act, what));
  if (config_.traits().pairs_taps() || config_.layer.hyper.exist()) {
    FT_ASSIGN_OR_RETURN(state_, arena.take_array<float>(rows * hidden, what));
  }
  if (config_.traits().pairs_taps()) {
    FT_ASSIGN_OR_RETURN(taps_, arena.take(rows * static_cast<size_t>(tap_width()) * act, what));
  }
  if (config_.norm_before_fc || config_.fc_norm) {
    const auto one = static_cast<size_t>(target_.config().hidden_size);
    const size_t width = config_.fc_norm ? one : static_cast<size_t>(tap_width());
    FT_ASSIGN_OR_RETURN(raw_taps_, arena.take_array<float>(rows * width, what));
    FT_ASSIGN_OR_RETURN(normed_tap_, arena.take(rows * one * act, what));
  }
  if (config_.norm_output) {
    FT_ASSIGN_OR_RETURN(normed_states_, arena.take_array<float>(rows * hidden, what));
  }
  if (config_.traits().entry == HeadEntry::kSummed) {
    FT_ASSIGN_OR_RETURN(entered_, arena.take(rows * hidden * act, what));
  }
  if (states_ranks_.are_several()) {
    const auto width = static_cast<size_t>(std::max(tap_width(), kept_width()));
    FT_ASSIGN_OR_RETURN(joined_,
                        arena.take(rows * width * dtype_size(target_.config().dtype), what));
  }
  FT_ASSIGN_OR_RETURN(head_input_,
                      arena.take(static_cast<size_t>(max_logits_rows_) * hidden * act, what));
  if (!config_.traits().learns_masks) return {};
  // The state of masks in it stays.
  FT_ASSIGN_OR_RETURN(known_, weight_arena_.take_array<float>((rows + 1) * hidden, what));
  return project_mask();
}

// The state of masks, which is the same in every pass.
Status Head::project_mask() {
  FT_ASSIGN_OR_RETURN(const auto queue, device_.make_queue());
  Arena staging(device_, MemoryKind::kPinned);
  Arena own(device_, MemoryKind::kDevice);
  FT_ASSIGN_OR_RETURN(auto* one_row, staging.take_array<StepCounts>(1, "the state of masks"));
  FT_ASSIGN_OR_RETURN(auto* counts, own.take_array<StepCounts>(1, "the state of masks"));
  *one_row = {.num_rows = 1, .num_logits_rows = 0, .num_spans = 0, .num_branches = 0};
  queue->copy(counts, one_row, sizeof(StepCounts));
  const Pass pass{{},
                  {.rows = weights_of(0).mask_taps, .dtype = DType::kF32, .tapped = true},
                  nullptr,
                  LayerRows{*queue, counts, nullptr, nullptr, 1},
                  weights_of(0)};
  take_taps(pass);
  float* to = known_ + int64_t{max_rows_} * config_.layer.hidden_size;
  multiply(pass.rows, taps_, pass.weights.fc, {to}, config_.layer.dtype);
  return queue->drain();
}

void Head::forward(Queue& queue, int32_t module, const DraftTensors& tensors,
                   const BatchState& batch, const KvCache& cache, const Source& source,
                   int32_t max_rows) {
  FT_CHECK(max_rows > 0 && max_rows <= max_rows_);
  FT_CHECK(source.rows != nullptr && tensors.source != nullptr && cache.spec() == kv_group());
  const StepTensors& step = tensors.rows;
  const LayerRows rows{queue, step.counts, step.positions, step.row_slot, max_rows};
  const Pass pass{tensors, source.are_parts ? join_parts(rows, source, tensors.source) : source,
                  source.are_parts ? nullptr : tensors.source, rows, weights_of(module)};
  HyperStreams& streams = weights_.modules.at(static_cast<size_t>(module)).streams;
  streams_ = streams.empty() ? nullptr : &streams;
  layers_.set_hyper(streams_);
  const void* x = enter(pass);
  const LayerKv kv{.kv = {},
                   .kv_slot = step.kv_slot,
                   .block_tables = batch.block_tables,
                   .max_blocks = batch.max_blocks,
                   .rope = rope_,
                   .kv_begin = 1 + module,
                   .position_shift = -1 - module};
  const DraftModuleWeights& weights = pass.weights;
  const float* delta = run_layers(pass, module, kv, cache, x);
  if (streams_ != nullptr) streams_->collapse(pass.rows, layers_.residual());
  // Completes the residual, and what the output matrix reads of each row.
  layers_.add_and_norm(pass.rows, delta, weights.output_norm);
  if (config_.norm_output) {
    norm_rows(pass.rows, layers_.residual(), nullptr, weights.output_norm, layers_.norm_size(),
              {normed_states_, DType::kF32});
  }
  chain(pass, module);
}

// Makes states() what the next entry pairs with, where that is not the residual.
void Head::chain(const Pass& pass, int32_t module) {
  const int32_t hidden = config_.layer.hidden_size;
  const RowsOut out{layers_.residual(), DType::kF32};
  if (config_.mtp.passes_states && module + 1 < config_.num_modules) {
    move(pass, {pass.source.rows, pass.from, pass.source.dtype, hidden}, out);
  } else if (config_.mtp.chains_normed) {
    move(pass, {layers_.normed(), nullptr, config_.layer.dtype, hidden}, out);
  }
}

// What remains to be added to the residual behind the module's last layer.
const float* Head::run_layers(const Pass& pass, int32_t module, LayerKv kv, const KvCache& cache,
                              const void* x) {
  const std::vector<DecoderLayer>& deeper = pass.weights.deeper;
  const DecoderLayer* layer = &pass.weights.layer;
  const float* delta = nullptr;
  for (size_t depth = 0; depth <= deeper.size(); ++depth) {
    const int32_t number = module * config_.num_layers + static_cast<int32_t>(depth);
    kv.kv = cache.layer(number);
    kv.index_keys = cache.index_keys(number);
    kv.window = kept_window(*layer);
    const DecoderLayer* next = depth < deeper.size() ? &deeper[depth] : nullptr;
    delta = layers_.run(pass.rows, kv, *layer, depth == 0 ? x : nullptr, next);
    layer = next;
  }
  return delta;
}

// The rows' states, whole and side by side.
DraftHead::Source Head::join_parts(const LayerRows& rows, const Source& source,
                                   const int32_t* from) {
  const int32_t part = kept_width() / states_ranks_.size;
  const auto taps = static_cast<int32_t>(config_.tap_layers.size());
  gather_parts(rows.queue, {.counts = rows.counts,
                            .in = source.rows,
                            .from = from,
                            .out = joined_,
                            .ranks = states_ranks_,
                            .max_rows = rows.max_rows,
                            .pieces = source.tapped ? taps : 1,
                            .piece_bytes = part * static_cast<int32_t>(dtype_size(source.dtype))});
  return {.rows = joined_, .dtype = source.dtype, .tapped = source.tapped};
}

const void* Head::enter(const Pass& pass) {
  const DraftModuleWeights& weights = pass.weights;
  const int32_t hidden = config_.layer.hidden_size;
  if (config_.traits().pairs_taps()) return enter_paired(pass);
  if (streams_ != nullptr) return enter_streams(pass);
  pair(pass, pass.source, pass.from);
  multiply(pass.rows, paired_, weights.fc, {layers_.residual()}, config_.layer.dtype);
  if (config_.traits().entry == HeadEntry::kNormed) {
    layers_.add_and_norm(pass.rows, nullptr, weights.layer.mixer_norm);
    return layers_.normed();
  }
  move(pass, {layers_.residual(), nullptr, DType::kF32, hidden}, {entered_, config_.layer.dtype});
  return entered_;
}

// EAGLE-3: fc makes a state of the taps, which attention reads beside the embedding.
const void* Head::enter_paired(const Pass& pass) {
  const DraftModuleWeights& weights = pass.weights;
  const int32_t hidden = config_.layer.hidden_size;
  float* state = state_;
  if (pass.source.tapped) {
    if (known_ != nullptr) state = known_;
    take_taps(pass);
    multiply(pass.rows, taps_, weights.fc, {state}, config_.layer.dtype);
  } else {
    move(pass, {pass.source.rows, pass.from, pass.source.dtype, hidden}, {state, DType::kF32});
  }
  pair(pass, {.rows = state, .dtype = DType::kF32}, nullptr);
  if (config_.norm_before_residual) {
    norm_rows(pass.rows, state, nullptr, weights.state_norm, layers_.norm_size(),
              {layers_.residual(), DType::kF32});
  } else {
    move(pass, {state, nullptr, DType::kF32, hidden}, {layers_.residual(), DType::kF32});
  }
  return paired_;
}

// Every stream of the state joins the embedding by itself (DeepSeek V4).
const void* Head::enter_streams(const Pass& pass) {
  const DraftModuleWeights& weights = pass.weights;
  const ModelConfig& config = config_.layer;
  const int32_t hidden = config.hidden_size, all = config_.state_size();
  float* const residual = layers_.residual();
  embed(pass.rows.queue, {.counts = pass.rows.counts,
                          .token_ids = pass.tensors.rows.token_ids,
                          .table = weights.embedding,
                          .out = residual,
                          .max_rows = pass.rows.max_rows,
                          .vocab = config.vocab_size,
                          .hidden = hidden,
                          .dtype = config.dtype,
                          .norm_weight = weights.embed_norm.weight,
                          .normed = layers_.normed(),
                          .eps = config.rms_norm_eps});
  multiply(pass.rows, layers_.normed(), weights.embed_fc, {residual}, config.dtype);
  for (int32_t first = 0; first < all; first += hidden) {
    const auto* rows = static_cast<const std::byte*>(pass.source.rows) +
                       static_cast<size_t>(first) * dtype_size(pass.source.dtype);
    move(pass, {rows, pass.from, pass.source.dtype, hidden, all}, {state_, DType::kF32});
    norm_rows(pass.rows, state_, nullptr, weights.state_norm, layers_.norm_size(),
              {layers_.normed(), config.dtype});
    move(pass, {residual, nullptr, DType::kF32, hidden}, {state_, DType::kF32});
    multiply(pass.rows, layers_.normed(), weights.fc, {state_, true}, config.dtype);
    move(pass, {state_, nullptr, DType::kF32, hidden}, {streams_->rows(), DType::kF32, all, first});
  }
  layers_.enter(pass.rows, nullptr, weights.layer);
  return layers_.normed();
}

// What fc reads.
void Head::take_taps(const Pass& pass) {
  const DraftModuleWeights& weights = pass.weights;
  const DType act = config_.layer.dtype;
  const bool one_norm = weights.all_taps_norm.weight != nullptr;
  for (size_t tap = 0; tap < weights.tap_norms.size(); ++tap) {
    norm_tap(pass, static_cast<int32_t>(tap), weights.tap_norms[tap]);
  }
  if (!weights.tap_norms.empty()) return;
  const RowsIn in{pass.source.rows, pass.from, pass.source.dtype, tap_width()};
  move(pass, in, one_norm ? RowsOut{raw_taps_, DType::kF32} : RowsOut{taps_, act});
  if (!one_norm) return;
  norm_rows(pass.rows, raw_taps_, nullptr, weights.all_taps_norm,
            {tap_width(), config_.layer.rms_norm_eps}, {taps_, act});
}

void Head::norm_tap(const Pass& pass, int32_t tap, const Norm& norm) {
  const int32_t hidden = target_.config().hidden_size;
  const DType act = config_.layer.dtype;
  const auto* rows =
      static_cast<const std::byte*>(pass.source.rows) +
      static_cast<size_t>(tap) * static_cast<size_t>(hidden) * dtype_size(pass.source.dtype);
  move(pass, {rows, pass.from, pass.source.dtype, hidden, tap_width()}, {raw_taps_, DType::kF32});
  norm_rows(pass.rows, raw_taps_, nullptr, norm, {hidden, config_.layer.rms_norm_eps},
            {normed_tap_, act});
  move(pass, {normed_tap_, nullptr, act, hidden}, {taps_, act, tap_width(), tap * hidden});
}

// Published heads read the embedding as it is stored, where the target scales it too.
void Head::pair(const Pass& pass, const Source& source, const int32_t* from) {
  const ModelConfig& layer = config_.layer;
  pair_rows(pass.rows.queue, {.counts = pass.rows.counts,
                              .token_ids = pass.tensors.rows.token_ids,
                              .table = pass.weights.embedding,
                              .states = source.rows,
                              .embed_norm = pass.weights.embed_norm.weight,
                              .states_norm = pass.weights.state_norm.weight,
                              .out = paired_,
                              .max_rows = pass.rows.max_rows,
                              .vocab = layer.vocab_size,
                              .hidden = layer.hidden_size,
                              .scale = 1,
                              .eps = layer.rms_norm_eps,
                              .states_dtype = source.dtype,
                              .dtype = layer.dtype,
                              .from = from,
                              .state_first = config_.mtp.state_first ? 1 : 0});
}

void Head::move(const Pass& pass, const RowsIn& in, const RowsOut& out) {
  move_rows(pass.rows.queue, {.counts = pass.rows.counts,
                              .in = in.rows,
                              .out = out.rows,
                              .from = in.index,
                              .to = nullptr,
                              .row_kind = RowKind::kToken,
                              .max_rows = pass.rows.max_rows,
                              .width = in.width,
                              .out_stride = out.stride > 0 ? out.stride : in.width,
                              .out_offset = out.offset,
                              .in_dtype = in.dtype,
                              .out_dtype = out.dtype,
                              .in_stride = in.stride});
}

const void* Head::head_input(Queue& queue, const DraftTensors& tensors, int32_t max_rows,
                             bool every_row) {
  FT_CHECK(max_rows > 0 && max_rows <= max_logits_rows_);
  if (every_row) return layers_.normed();
  const ModelConfig& layer = config_.layer;
  move_rows(queue, {.counts = tensors.rows.counts,
                    .in = layers_.normed(),
                    .out = head_input_,
                    .from = tensors.rows.logits_rows,
                    .to = nullptr,
                    .row_kind = RowKind::kLogits,
                    .max_rows = max_rows,
                    .width = layer.hidden_size,
                    .out_stride = layer.hidden_size,
                    .out_offset = 0,
                    .in_dtype = layer.dtype,
                    .out_dtype = layer.dtype});
  return head_input_;
}

}  // namespace

Result<std::unique_ptr<DraftHead>> load_draft_head(Device& device, const std::string& folder,
                                                   const DraftHeadConfig& config, Model& target,
                                                   const DraftHeadOptions& options) {
  FT_ASSIGN_OR_RETURN(auto head, load_head_as<Head>(device, folder, config, target, options));
  return std::unique_ptr<DraftHead>(std::move(head));
}

}  // namespace foretoken
