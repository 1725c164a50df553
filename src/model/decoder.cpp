#include "model/decoder.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "device/arena.h"
#include "kernels/comm/collectives.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/rows/softcap.h"
#include "model/decoder_weights.h"
#include "model/layer_states.h"
#include "model/lora_pool.h"
#include "model/stack/embedded_rows.h"
#include "model/stack/layer_runner.h"
#include "model/taps.h"

namespace foretoken {
namespace {

class Decoder final : public Model {
 public:
  // `part`: of this rank.
  Decoder(Device& device, const DecoderSource& source, const ModelConfig& part,
          const LoadOptions& options)
      : device_(device),
        files_(source.files),
        load_format_(options.load_format),
        traits_(source.traits),
        config_(source.config),
        part_(part),
        sharding_(options.sharding),
        stages_(options.stages),
        max_rows_(options.max_rows),
        max_logits_rows_(options.max_logits_rows),
        max_model_len_(options.max_model_len > 0 ? options.max_model_len : config_.max_context),
        embedding_scale_(embedding_scale(source.config, source.traits)),
        weight_arena_(device, MemoryKind::kDevice),
        scratch_arena_(device, MemoryRole::kScratch),
        plan_(plan_decoder(
            part, compose_layers(part, source.traits),
            {max_model_len_, options.one_kv_group, options.kv_format, options.sharding.context},
            options.stages)),
        states_(device),
        layers_(device, part_, *options.attention, max_rows_, sharding_, options.kv_block_size),
        taps_(config_) {
    if (options.second_lane != nullptr) {
      second_lane_ = std::make_unique<LayerRunner>(device, part_, *options.attention, max_rows_,
                                                   *options.second_lane, options.kv_block_size);
      second_lane_->set_carried(&carried_[1]);
    }
    layers_.set_carried(&carried_[0]);
  }

  Status load(WeightLoader& loader);
  Status take_scratch();
  const ModelConfig& config() const override { return config_; }
  std::vector<KvGroupSpec> kv_groups() const override { return plan_.groups; }
  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t num_weights() const override { return num_decoder_weights(config_, traits_); }
  int64_t scratch_bytes() const override {
    return static_cast<int64_t>(scratch_arena_.bytes_taken());
  }
  void forward(Queue& queue, const StepTensors& tensors, const BatchState& batch,
               const KvCaches& caches, const ForwardRows& rows) override;
  int64_t state_bytes(const StateUse& use) const override {
    return LayerStates::bytes(plan_.layers, use);
  }
  Status take_states(const StateUse& use) override { return states_.take(plan_.layers, use); }
  std::vector<BlockPart> state_parts() const override { return states_.parts(); }
  Status take_adapter_slots(const AdapterRoom& room) override;
  LoraPool* adapters() const override { return adapters_.get(); }
  const void* hidden_states(Queue& queue, const StepTensors& tensors, int32_t max_rows) override;
  void add_tap(const TapSink& sink) override { taps_.add(sink); }
  const std::vector<int32_t>& tapped_layers() const override { return taps_.layers(); }
  void pass_on(std::vector<int32_t> layers) override { taps_.pass_on(std::move(layers)); }
  SharedHead shared_head() const override { return {weights_.head.get(), sharding_}; }
  Result<RowTable> shared_embedding() override;
  std::optional<LentKv> lent_kv(bool windowed) const override {
    return lend_kv(config_, plan_, stages_, weights_.layers, windowed);
  }
  const void* head_input(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                         int32_t max_rows) override;
  void logits(Queue& queue, const StepTensors& tensors, int32_t row_offset, int32_t max_rows,
              float* out) override;
  const float* part_logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                           int32_t max_rows) override;

 private:
  // What the ops of one forward pass have in common, or of its rows in one of two lanes.
  struct Pass {
    StepTensors tensors;
    const BatchState& batch;
    const KvCaches& caches;
    LayerRows rows;
    LayerRunner& layers;
    int lane = 0;
  };

  Status upload_ropes(WeightLoader& loader);
  Status load_inputs(WeightLoader& loader);
  void embed_tokens(const Pass& pass);
  ColumnPart vocab_part() const {
    return column_part(config_.vocab_size, sharding_.rank, sharding_.size);
  }
  void own_logits(Queue& queue, const StepTensors& tensors, int32_t row_offset, int32_t max_rows,
                  float* out);
  Pass lane_pass(const Pass& whole, int lane);
  CarriedRows& carried_of(const Pass& pass) { return carried_[static_cast<size_t>(pass.lane)]; }
  const float*& delta_of(const Pass& pass) { return last_delta_[static_cast<size_t>(pass.lane)]; }
  LayerKv layer_kv(const Pass& pass, int32_t layer) const;
  void tap(const Pass& pass, int32_t layer, const void* states) {
    taps_.keep(pass.rows.queue, pass.tensors, pass.rows.max_rows, layer, states);
  }
  bool is_passed_on(int32_t layer) const { return !stages_.is_last() && taps_.has(layer); }
  bool follows_at_once(int32_t layer) const;
  const DecoderLayer& layer_of(int32_t layer) const {
    return weights_.layers.at(size_t(layer % config_.num_stored_layers()));
  }
  // Calls use(pass) for each; of two lanes, between Queue::fork and join.
  static void each_lane(std::span<const Pass> passes, const auto& use) {
    for (const Pass& pass : passes) {
      if (passes.size() > 1) pass.rows.queue.use_lane(pass.lane);
      use(pass);
    }
  }
  void run_stage(std::span<const Pass> passes);
  void run_layer(std::span<const Pass> passes, int32_t layer);
  void enter_layer(const Pass& pass, int32_t layer);
  void run_entered(const Pass& pass, int32_t layer);
  void leave_layers(const Pass& pass);
  StageCut cut_before(int32_t layer, bool sends) const {
    return {stages_.comm, config_.layers[static_cast<size_t>(layer)], layer, sends};
  }
  void receive_stage(std::span<const Pass> passes, int32_t first_layer);

  Device& device_;
  const ModelFiles files_;
  const LoadFormat load_format_;
  const DecoderTraits& traits_;
  const ModelConfig config_;
  const ModelConfig part_;
  const Sharding sharding_;
  const Stages stages_;
  const int32_t max_rows_;
  const int32_t max_logits_rows_;
  const int32_t max_model_len_;
  const float embedding_scale_;
  Arena weight_arena_;
  Arena scratch_arena_;
  int64_t weight_bytes_ = 0;
  const DecoderPlan plan_;
  SpanSight sight_;
  DeviceRope ropes_[3];  // by LayerRope; nothing turns by the first
  DecoderWeights weights_;
  LayerStates states_;
  LayerRunner layers_;
  std::unique_ptr<LayerRunner> second_lane_;  // null: there is one lane
  std::unique_ptr<LoraPool> adapters_;        // null: there is no room for any
  EmbeddedRows embedded_;
  std::array<CarriedRows, 2> carried_;  // of each lane
  void* head_input_ = nullptr;          // [max_logits_rows, hidden] of the model's type
  float* part_logits_ = nullptr;  // [max_logits_rows, this rank's part of vocab]; null: it is all
  Taps taps_;                     // of this stage or, passed on, the last one
  // What the last forward has yet to add to its residual, by lane; and whether that was in two.
  std::array<const float*, 2> last_delta_{};
  bool was_in_lanes_ = false;
  bool adapts_ends_ = false;  // of its rows: ForwardRows::adapts_ends
};

Status Decoder::load(WeightLoader& loader) {
  WeightLoader::Guard guard(loader);
  FT_RETURN_IF_ERROR(upload_ropes(loader));
  FT_ASSIGN_OR_RETURN(
      weights_, load_decoder_weights(weight_arena_, config_, traits_, loader, sharding_, stages_));
  FT_RETURN_IF_ERROR(load_inputs(loader));
  weight_bytes_ = loader.bytes_loaded();
  layers_.fit_rounded(loader.rounded_columns());
  return guard.finish();
}

Status Decoder::load_inputs(WeightLoader& loader) {
  const std::string body = find_place(traits_, loader).body;
  PartLoader parts(weight_arena_, config_, norms_of(config_, traits_), loader, sharding_);
  FT_RETURN_IF_ERROR(
      embedded_.load(parts, weight_arena_, body, body + traits_.positions, stages_.is_first()));
  FT_RETURN_IF_ERROR(carried_[0].load(parts, weight_arena_, body, max_rows_, stages_));
  if (second_lane_ != nullptr) carried_[1] = carried_[0];
  return {};
}

Result<RowTable> Decoder::shared_embedding() {
  RowTable& table = weights_.embedding;
  if (!table.exists()) table = rows_of_head(weights_, config_, sharding_);
  if (!table.exists()) {
    const ModelFiles* files = load_format_ == LoadFormat::kDummy ? nullptr : &files_;
    FT_ASSIGN_OR_RETURN(table, load_embedding(device_, weight_arena_, files, config_, traits_));
    weight_bytes_ += table.num_bytes(config_.own_ids(), config_.hidden_size);
  }
  return table;
}

Status Decoder::upload_ropes(WeightLoader& loader) {
  const auto upload = [&](const RopeConfig& rope) {
    return upload_rope(rope, max_model_len_, weight_arena_, loader);
  };
  FT_ASSIGN_OR_RETURN(ropes_[size_t(LayerRope::kFull)], upload(config_.rope.full));
  if (!config_.rope.windowed) return {};
  FT_ASSIGN_OR_RETURN(ropes_[size_t(LayerRope::kWindowed)], upload(*config_.rope.windowed));
  return {};
}

Status Decoder::take_scratch() {
  for (const DecoderLayer& layer : weights_.layers) {
    layers_.fit(layer);
    if (second_lane_ != nullptr) second_lane_->fit(layer);
  }
  FT_RETURN_IF_ERROR(layers_.take_scratch(scratch_arena_, second_lane_.get()));
  const ScratchSource source{device_, layers_.attention(), scratch_arena_, config_.dtype,
                             max_rows_};
  FT_RETURN_IF_ERROR(sight_.take(config_, source, second_lane_ != nullptr ? 2 : 1));
  FT_RETURN_IF_ERROR(embedded_.take_scratch(source));
  for (CarriedRows& rows : carried_) FT_RETURN_IF_ERROR(rows.take_scratch(source));
  if (!stages_.is_last()) return {};
  ScratchSource of_logits = source;
  of_logits.max_rows = max_logits_rows_;
  FT_ASSIGN_OR_RETURN(head_input_, of_logits.act(config_.hidden_size));
  if (!cuts_columns(config_.vocab_size, sharding_.size)) return {};
  FT_ASSIGN_OR_RETURN(part_logits_, of_logits.floats(vocab_part().count));
  return {};
}

void Decoder::forward(Queue& queue, const StepTensors& tensors, const BatchState& batch,
                      const KvCaches& caches, const ForwardRows& rows) {
  FT_CHECK(rows.max_rows > 0 && rows.max_rows <= max_rows_ && plan_.fits(caches));
  FT_CHECK(plan_.groups.size() == 1 ||
           (batch.window_tables != nullptr && tensors.window_slot != nullptr));
  LoraPass lora;
  const bool adapts = rows.adapters != AdapterUse::kNone;
  if (adapts) {
    FT_CHECK(adapters_ != nullptr && !rows.in_lanes);
    lora = adapters_->begin(queue, tensors, batch.params, rows.max_rows,
                            rows.adapters == AdapterUse::kLayers);
  }
  sight_.begin(queue, tensors, rows);
  const Pass pass{
      tensors,
      batch,
      caches,
      {queue, tensors.counts, tensors.positions, tensors.row_slot, rows.max_rows, rows.runs,
       adapts ? &lora : nullptr, false, layers_.rounded(), tensors.token_ids},
      layers_};
  last_delta_ = {};
  adapts_ends_ = adapts && rows.adapts_ends;
  was_in_lanes_ = rows.in_lanes;
  if (rows.in_lanes) {
    const Pass lanes[] = {lane_pass(pass, 0), lane_pass(pass, 1)};
    run_stage(lanes);
  } else {
    run_stage({&pass, 1});
  }
  if (!taps_.wants(TapSink::kFinalNorm)) return;
  hidden_states(queue, tensors, rows.max_rows);
  for (int lane = 0; lane < (rows.in_lanes ? 2 : 1); ++lane) {
    const Pass own = rows.in_lanes ? lane_pass(pass, lane) : pass;
    tap(own, TapSink::kFinalNorm, own.layers.normed());
  }
}

Decoder::Pass Decoder::lane_pass(const Pass& whole, int lane) {
  FT_CHECK(second_lane_ != nullptr);
  Pass own{lane_of(whole.tensors, lane, max_rows_), whole.batch, whole.caches, whole.rows,
           lane == 0 ? layers_ : *second_lane_,     lane};
  own.rows.counts = own.tensors.counts;
  own.rows.positions = own.tensors.positions;
  own.rows.row_slot = own.tensors.row_slot;
  own.rows.token_ids = own.tensors.token_ids;
  own.rows.beside = true;
  own.rows.rounded = own.layers.rounded();
  return own;
}

Status Decoder::take_adapter_slots(const AdapterRoom& room) {
  FT_CHECK(adapters_ == nullptr);
  LoraPool::Limits limits = adapter_limits(weights_, config_, room);
  limits.max_rows = std::max(max_rows_, max_logits_rows_);
  limits.has_all_layers = !stages_.is_cut();
  FT_ASSIGN_OR_RETURN(adapters_,
                      LoraPool::create(device_, adapted_linears(weights_), config_.dtype, limits));
  return {};
}

// Whether nothing looks at the residual between this layer of the stage and the one before it.
bool Decoder::follows_at_once(int32_t layer) const {
  const ShardRange own = stages_.layers(config_.num_layers);
  return layer > own.begin && layer < own.begin + own.count && !taps_.has(layer) &&
         !config_.begins_loop(layer);
}

// Unless the layer before it has left what it reads.
void Decoder::enter_layer(const Pass& pass, int32_t index) {
  LayerRunner& layers = pass.layers;
  if (config_.begins_loop(index)) {
    layers.norm_residual(pass.rows, std::exchange(delta_of(pass), nullptr), weights_.final_norm);
  }
  if (follows_at_once(index)) return;
  if (index > 0) layers.enter(pass.rows, delta_of(pass), layer_of(index));
  tap(pass, index, layers.residual());
}

void Decoder::run_entered(const Pass& pass, int32_t index) {
  const void* x = follows_at_once(index) ? nullptr : pass.layers.normed();
  const DecoderLayer* next = follows_at_once(index + 1) ? &layer_of(index + 1) : nullptr;
  delta_of(pass) = pass.layers.run(pass.rows, layer_kv(pass, index), layer_of(index), x, next);
}

// Rows go to another stage in one order, which lanes that run at the same time do not have.
void Decoder::run_layer(std::span<const Pass> passes, int32_t index) {
  const bool sends = is_passed_on(index), in_lanes = passes.size() > 1;
  Queue& queue = passes[0].rows.queue;
  each_lane(passes, [&](const Pass& pass) {
    enter_layer(pass, index);
    if (!sends) run_entered(pass, index);
  });
  if (!sends) return;
  if (in_lanes) queue.join();
  for (const Pass& pass : passes) pass.layers.cross_residual(pass.rows, cut_before(index, true));
  if (in_lanes) queue.fork();
  each_lane(passes, [&](const Pass& pass) { run_entered(pass, index); });
}

// Both lanes go through a layer before either goes on, so that on every device the exchanges of one
// stand beside the products of the other.
void Decoder::run_stage(std::span<const Pass> passes) {
  const ShardRange own = stages_.layers(config_.num_layers);
  const auto first = static_cast<int32_t>(own.begin);
  const auto end = static_cast<int32_t>(own.begin + own.count);
  const bool in_lanes = passes.size() > 1;
  Queue& queue = passes[0].rows.queue;
  if (!stages_.is_first()) receive_stage(passes, first);
  for (const Pass& pass : passes) {
    if (stages_.is_first()) embed_tokens(pass);
  }
  if (in_lanes) queue.fork();
  for (int32_t i = first; i < end; ++i) run_layer(passes, i);
  each_lane(passes, [&](const Pass& pass) { leave_layers(pass); });
  if (in_lanes) queue.join();
  if (stages_.is_last()) return;
  for (const Pass& pass : passes) pass.layers.cross(pass.rows, cut_before(end, true));
}

// What the last norm reads, or the next stage, becomes the residual.
void Decoder::leave_layers(const Pass& pass) {
  const float*& delta = delta_of(pass);
  const bool is_end = stages_.is_last(), keeps = is_end && taps_.wants(TapSink::kLastLayer);
  const HyperStreams& streams = carried_of(pass).hyper;
  if (is_end && !streams.empty()) tap(pass, TapSink::kStreams, streams.rows());
  if (is_end && pass.layers.leave_layers(pass.rows, delta)) delta = nullptr;
  const float* last = is_end && !keeps ? nullptr : std::exchange(delta, nullptr);
  if (last != nullptr) pass.layers.add_and_norm(pass.rows, last, {});
  if (keeps) tap(pass, TapSink::kLastLayer, pass.layers.residual());
}

// Between stages travel, in the order of layers, the hidden states that the last one taps, then all
// that layers read of a row.
void Decoder::receive_stage(std::span<const Pass> passes, int32_t first_layer) {
  for (const int32_t layer : taps_.layers()) {
    if (layer >= first_layer) break;
    for (const Pass& pass : passes) {
      pass.layers.cross_residual(pass.rows, cut_before(first_layer, false));
      stages_.is_last() ? tap(pass, layer, pass.layers.residual())
                        : pass.layers.cross_residual(pass.rows, cut_before(first_layer, true));
    }
  }
  for (const Pass& pass : passes) pass.layers.cross(pass.rows, cut_before(first_layer, false));
}

// `head_input` adds the last layer's output to the rows that want logits; only here all get it.
const void* Decoder::hidden_states(Queue& queue, const StepTensors& tensors, int32_t max_rows) {
  for (int lane = 0; lane < (was_in_lanes_ ? 2 : 1); ++lane) {
    const StepTensors own = was_in_lanes_ ? lane_of(tensors, lane, max_rows_) : tensors;
    LayerRunner& layers = lane == 0 ? layers_ : *second_lane_;
    const float*& delta = last_delta_[static_cast<size_t>(lane)];
    layers.add_and_norm({queue, own.counts, own.positions, own.row_slot, max_rows},
                        std::exchange(delta, nullptr), weights_.final_norm);
  }
  return layers_.normed();
}

LayerKv Decoder::layer_kv(const Pass& pass, int32_t layer) const {
  const auto i = static_cast<size_t>(layer);
  const LayerPlan& plan = plan_.layers[i];
  LayerKv own{};
  own.state = states_.of(layer, stages_.is_last() ? pass.batch.slots : nullptr);
  own.rope = ropes_[static_cast<size_t>(LayerRope::kFull)];
  if (plan.num_heads == 0) return own;
  const bool is_first = layer == stages_.layers(config_.num_layers).begin;
  const KvCache& cache = *(plan.windowed_group ? pass.caches.windowed : pass.caches.full);
  return {.kv = cache.layer(plan.group_index),
          .kv_slot = plan.windowed_group ? pass.tensors.window_slot : pass.tensors.kv_slot,
          .block_tables = plan.windowed_group ? pass.batch.window_tables : pass.batch.block_tables,
          .max_blocks = pass.batch.max_blocks,
          .rope = ropes_[static_cast<size_t>(plan.rope)],
          .window = plan.window,
          .repeats = !is_first && plan.sees_as(plan_.layers[i - 1]),
          .last_seen = sight_.last_seen(pass.lane),
          .state = own.state,
          .index_keys = pass.caches.full->index_keys(plan.index_place),
          .compressed = pass.caches.full->compressed(plan.compressed_kind, plan.compressed_place),
          .full_slot = pass.tensors.kv_slot,
          .full_tables = pass.batch.block_tables};
}

const void* Decoder::head_input(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                                int32_t max_rows) {
  FT_CHECK(stages_.is_last() && row_offset >= 0 && max_rows > 0 && max_rows <= max_logits_rows_);
  RmsNormArgs norm =
      norm_args(tensors.counts, layers_.residual(), last_delta_[0], weights_.final_norm,
                layers_.norm_size(), {head_input_, config_.dtype});
  norm.row_index = tensors.logits_rows;
  norm.row_offset = row_offset;
  norm.max_rows = max_rows;
  rms_norm(queue, norm);
  return head_input_;
}

void Decoder::logits(Queue& queue, const StepTensors& tensors, int32_t row_offset, int32_t max_rows,
                     float* out) {
  if (part_logits_ == nullptr) return own_logits(queue, tensors, row_offset, max_rows, out);
  const float* part = part_logits(queue, tensors, row_offset, max_rows);
  gather_columns(
      queue, {sharding_.comm, tensors.counts, part, out, row_offset, max_rows, config_.vocab_size});
}

const float* Decoder::part_logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                                  int32_t max_rows) {
  FT_CHECK(part_logits_ != nullptr);
  own_logits(queue, tensors, row_offset, max_rows, part_logits_);
  return part_logits_;
}

// Of the columns that this rank has.
void Decoder::own_logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                         int32_t max_rows, float* out) {
  const int32_t columns = vocab_part().count;
  const void* x = head_input(queue, tensors, row_offset, max_rows);
  if (adapts_ends_) adapters_->begin_logits(queue, tensors, row_offset, max_rows);
  gemm(queue, {tensors.counts, x, weights_.head.get(), out, weights_.head_bias, RowKind::kLogits,
               row_offset, max_rows, columns, config_.hidden_size, config_.dtype, DType::kF32});
  if (adapts_ends_) adapters_->add_to_logits(queue, x, out, max_rows);
  if (config_.logits_softcap == 0 && config_.logits_scale == 1) return;
  softcap(queue, {tensors.counts, out, RowKind::kLogits, row_offset, max_rows, columns,
                  config_.logits_softcap, config_.logits_scale});
}

// The first norm rides along where the op knows it.
void Decoder::embed_tokens(const Pass& pass) {
  LayerRunner& layers = pass.layers;
  const Norm& norm = weights_.layers.front().mixer_norm;
  const Norm& own = weights_.embedding_norm;
  const bool norms_at_once = norm.is_rms() && embedded_.empty() && own.weight == nullptr &&
                             carried_of(pass).empty() && !weights_.layers.front().norms_residual &&
                             !adapts_ends_;
  embed(pass.rows.queue, {.counts = pass.tensors.counts,
                          .token_ids = pass.tensors.token_ids,
                          .table = weights_.embedding,
                          .out = embedded_.table_rows(layers.residual()),
                          .max_rows = pass.rows.max_rows,
                          .vocab = config_.own_ids(),
                          .hidden = config_.embedding_width(),
                          .dtype = config_.dtype,
                          .scale = embedding_scale_,
                          .norm_weight = norms_at_once ? norm.weight : nullptr,
                          .normed = norms_at_once ? layers.normed() : nullptr,
                          .eps = config_.rms_norm_eps});
  if (adapts_ends_) adapters_->add_to_embeddings(pass.rows, layers.residual());
  const bool is_normed = embedded_.finish(pass.rows, own, layers.residual());
  if (own.weight != nullptr && !is_normed) layers.norm_residual(pass.rows, nullptr, own);
  carried_of(pass).begin(pass.rows, layers.residual());
  layers.keep_embeddings(pass.rows);
  if (!norms_at_once) layers.enter(pass.rows, nullptr, weights_.layers.front());
}

}  // namespace

Result<std::unique_ptr<Model>> load_decoder(Device& device, const DecoderSource& source,
                                            WeightLoader& loader, const LoadOptions& options) {
  FT_ASSIGN_OR_RETURN(const ModelConfig part, shard_config(source.config, options.sharding));
  auto model = std::make_unique<Decoder>(device, source, part, options);
  FT_RETURN_IF_ERROR(model->load(loader));
  FT_RETURN_IF_ERROR(model->take_scratch());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace foretoken
