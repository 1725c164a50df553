#include "model/heads/assistant_head.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "compat/compat.h"
#include "kernels/draft/pair_rows.h"
#include "model/config/architecture.h"
#include "model/decoder_weights.h"
#include "model/heads/chain_loader.h"
#include "model/layer/layer_spec.h"
#include "model/layer/layer_tensors.h"
#include "model/stack/layer_runner.h"

namespace foretoken {
namespace {

// What a layer attends to.
struct Sight {
  LentKv kv;
  DeviceRope rope;
};

class AssistantHead final : public ChainHead {
 public:
  // `part`: of this rank's layers.
  AssistantHead(Device& device, const AssistantConfig& config, const ModelConfig& part,
                Model& target, const DraftHeadOptions& options)
      : config_(config),
        part_(part),
        target_(target),
        max_rows_(options.max_rows),
        embedding_scale_(embedding_scale(target.config(),
                                         find_architecture(target.config().architecture)->decoder)),
        weight_arena_(device, MemoryKind::kDevice),
        scratch_arena_(device, MemoryRole::kScratch),
        runner_(device, part_, *options.attention, options.max_rows, options.sharding),
        taps_(target, options.states) {}

  Status load(const ChainSource& source);
  Status take_scratch();

  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t scratch_bytes() const override {
    return static_cast<int64_t>(scratch_arena_.bytes_taken());
  }
  const void* forward(Queue& queue, const ChainPass& pass) override;
  Output output(int32_t) const override {
    const bool is_whole = !output_.head.clusters.exist();
    return {output_.head, config_.layer.hidden_size, is_whole ? config_.layer.logits_softcap : 0};
  }

 private:
  bool has_window(size_t layer) const { return config_.layer.layers[layer].window > 0; }
  const Sight& sight_of(size_t layer) const { return sights_[has_window(layer) ? 1 : 0]; }
  LayerKv layer_kv(const ChainPass& pass, size_t layer) const;
  void enter(const LayerRows& rows, const ChainPass& pass);
  Status look_at_target(const ChainSource& source, WeightLoader& weights);
  Status load_layers(const ChainSource& source, WeightLoader& weights);
  Status load_output(const ChainSource& source, ChainLoader& chain);
  Status load_clusters(const ChainSource& source, const std::string& name, ChainLoader& chain);
  double num_elements() const;

  const AssistantConfig config_;
  const ModelConfig part_;
  Model& target_;
  const int32_t max_rows_;
  const float embedding_scale_;
  Arena weight_arena_;
  Arena scratch_arena_;
  int64_t weight_bytes_ = 0;
  RowTable embedding_;  // the target's
  Sight sights_[2];     // of layers without a window, and with one
  Linear pre_;          // of [embedding, state]
  Linear post_;
  std::vector<DecoderLayer> weights_;
  Norm norm_;
  OutputRows output_;
  Linear centroids_;  // [clusters, hidden], where there are some
  LayerRunner runner_;
  TapReader taps_;
  float* states_ = nullptr;  // [max_rows, the target's hidden]
  void* paired_ = nullptr;   // [max_rows, twice that] of the target's type
};

double AssistantHead::num_elements() const {
  const ModelConfig& layer = config_.layer;
  const double hidden = layer.hidden_size;
  double count =
      hidden * (layer.vocab_size + config_.clusters + 3.0 * target_.config().hidden_size);
  const DecoderTraits& traits = kGemma4Architecture.decoder;
  for (const LayerSpec& spec : compose_layers(layer, traits)) {
    for (const LayerTensor& tensor : layer_tensors(spec, traits.norms, layer.hidden_size)) {
      count += tensor.size();
    }
  }
  return count;
}

Status AssistantHead::load(const ChainSource& source) {
  FT_ASSIGN_OR_RETURN(embedding_, target_.shared_embedding());
  FT_ASSIGN_OR_RETURN(const auto chain, ChainLoader::open(source, weight_arena_,
                                                          static_cast<int64_t>(num_elements())));
  WeightLoader& weights = chain->weights();
  WeightLoader::Guard guard(weights);
  FT_RETURN_IF_ERROR(look_at_target(source, weights));
  const int64_t hidden = config_.layer.hidden_size, backbone = target_.config().hidden_size;
  FT_RETURN_IF_ERROR(chain->load_layer({"pre_projection", hidden}, 2 * backbone, false, &pre_));
  FT_RETURN_IF_ERROR(chain->load_layer({"post_projection", backbone}, hidden, false, &post_));
  FT_RETURN_IF_ERROR(load_layers(source, weights));
  FT_RETURN_IF_ERROR(load_output(source, *chain));
  FT_RETURN_IF_ERROR(guard.finish());
  weight_bytes_ = weights.bytes_loaded();
  return weights.check_all_used("the assistant");
}

// Where the keys and values lie that its layers attend to, and how queries turn.
Status AssistantHead::look_at_target(const ChainSource& source, WeightLoader& weights) {
  const RopeConfigs& ropes = config_.layer.rope;
  const int32_t max_len = source.options.max_model_len > 0 ? source.options.max_model_len
                                                           : target_.config().max_context;
  for (const bool windowed : {false, true}) {
    bool is_read = false;
    for (size_t i = 0; i < config_.layer.layers.size(); ++i) is_read |= has_window(i) == windowed;
    if (!is_read) continue;
    const std::optional<LentKv> lent = target_.lent_kv(windowed);
    if (!lent) return compat({.lends_elsewhere = true});
    Sight& sight = sights_[windowed ? 1 : 0];
    sight.kv = *lent;
    FT_ASSIGN_OR_RETURN(
        sight.rope, upload_rope(windowed && ropes.windowed ? *ropes.windowed : ropes.full, max_len,
                                weight_arena_, weights));
  }
  return {};
}

Status AssistantHead::load_layers(const ChainSource& source, WeightLoader& weights) {
  const DecoderTraits& traits = kGemma4Architecture.decoder;
  PartLoader parts(weight_arena_, config_.layer, traits.norms, weights, source.options.sharding);
  const std::vector<LayerSpec> specs = compose_layers(config_.layer, traits);
  weights_.resize(specs.size());
  weights.enter_layers(false);
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string base = "model.layers." + std::to_string(i) + ".";
    FT_RETURN_IF_ERROR(load_layer(parts, base, specs[i], &weights_[i]));
    std::get<Gqa>(weights_[i].mixer).kv_scales = sight_of(i).kv.scales;
  }
  weights.leave_layers();
  return parts.load_norm("model.norm", config_.layer.hidden_size, &norm_);
}

Status AssistantHead::load_output(const ChainSource& source, ChainLoader& chain) {
  const ModelConfig& layer = config_.layer;
  const std::string embedding = "model.embed_tokens.weight", head = "lm_head.weight";
  const std::string& name = layer.tie_word_embeddings ? embedding : head;
  // Nothing else of the other one is read: tokens enter by the target's embedding.
  chain.weights().ignore(layer.tie_word_embeddings ? head : embedding);
  if (config_.clusters > 0) return load_clusters(source, name, chain);
  FT_ASSIGN_OR_RETURN(output_, chain.outputs().own(name, layer.vocab_size, layer.hidden_size, {}));
  return {};
}

// Ids that a reduced vocabulary lacks are left out of their clusters.
Status AssistantHead::load_clusters(const ChainSource& source, const std::string& name,
                                    ChainLoader& chain) {
  const ModelConfig& layer = config_.layer;
  WeightLoader& weights = chain.weights();
  std::vector<int32_t> ids(static_cast<size_t>(layer.vocab_size));
  std::iota(ids.begin(), ids.end(), 0);
  if (!chain.is_random()) {
    const std::string ordering = "masked_embedding.token_ordering";
    FT_ASSIGN_OR_RETURN(const std::vector<int64_t> order,
                        weights.integers(ordering, layer.vocab_size));
    std::vector<bool> seen(ids.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] < 0 || order[i] >= layer.vocab_size || seen[static_cast<size_t>(order[i])]) {
        return invalid_argument("tensor '" + ordering + "' of the assistant has " +
                                std::to_string(order[i]) +
                                ", which is no id or there already; use a whole download");
      }
      seen[static_cast<size_t>(order[i])] = true;
      ids[i] = static_cast<int32_t>(order[i]);
    }
  }
  const std::vector<int32_t>& wanted = source.options.vocab_ids;
  if (!wanted.empty()) {
    const std::unordered_set<int32_t> kept(wanted.begin(), wanted.end());
    for (int32_t& id : ids) id = kept.contains(id) ? id : -1;
  }
  DraftHead::Clusters& clusters = output_.head.clusters;
  FT_ASSIGN_OR_RETURN(void* memory,
                      weights.upload(weight_arena_, ids.data(), ids.size() * sizeof(int32_t),
                                     "the ids of an assistant's clusters"));
  clusters.ids = static_cast<const int32_t*>(memory);
  FT_ASSIGN_OR_RETURN(clusters.table, weights.plain_table(weight_arena_, name, layer.vocab_size,
                                                          layer.hidden_size));
  FT_RETURN_IF_ERROR(chain.parts().load_linear({{"masked_embedding.centroids", config_.clusters}},
                                               layer.hidden_size, false, &centroids_));
  clusters.centroids = centroids_.weight.get();
  clusters.count = config_.clusters;
  clusters.each = layer.vocab_size / config_.clusters;
  clusters.top = config_.top;
  output_.head.rows = layer.vocab_size;
  return {};
}

Status AssistantHead::take_scratch() {
  const char* what = "the draft head's scratch (lower --max-num-seqs)";
  const auto rows = static_cast<size_t>(max_rows_);
  const auto backbone = static_cast<size_t>(target_.config().hidden_size);
  for (const DecoderLayer& layer : weights_) runner_.fit(layer);
  FT_RETURN_IF_ERROR(runner_.take_scratch(scratch_arena_));
  FT_ASSIGN_OR_RETURN(states_, scratch_arena_.take_array<float>(rows * backbone, what));
  FT_ASSIGN_OR_RETURN(
      paired_, scratch_arena_.take(rows * 2 * backbone * dtype_size(target_.config().dtype), what));
  return taps_.take_scratch(scratch_arena_, max_rows_);
}

// The target's keys and values; rows turn as the position behind those that they see.
LayerKv AssistantHead::layer_kv(const ChainPass& pass, size_t layer) const {
  const Sight& sight = sight_of(layer);
  const bool windowed = sight.kv.windowed_group;
  const KvCache* cache = windowed ? pass.target.windowed : pass.target.full;
  FT_CHECK(cache != nullptr);
  return {.kv = cache->layer(sight.kv.group_index),
          .kv_slot = pass.tensors.rows.kv_slot,
          .block_tables = windowed ? pass.batch.window_tables : pass.batch.block_tables,
          .max_blocks = pass.batch.max_blocks,
          .rope = sight.rope,
          .window = sight.kv.window,
          .position_shift = 1};
}

void AssistantHead::enter(const LayerRows& rows, const ChainPass& pass) {
  const ModelConfig& target = target_.config();
  const bool is_first = pass.step == 0;
  if (is_first) {
    taps_.read(rows.queue, pass.tensors, pass.taps, rows.max_rows, states_, DType::kF32);
  }
  pair_rows(rows.queue, {.counts = rows.counts,
                         .token_ids = pass.tensors.rows.token_ids,
                         .table = embedding_,
                         .states = states_,
                         .embed_norm = nullptr,
                         .states_norm = nullptr,
                         .out = paired_,
                         .max_rows = rows.max_rows,
                         .vocab = target.own_ids(),
                         .hidden = target.hidden_size,
                         .scale = embedding_scale_,
                         .eps = 0,
                         .states_dtype = DType::kF32,
                         .dtype = target.dtype,
                         .from = is_first ? nullptr : pass.tensors.source});
  multiply(rows, paired_, pre_, {runner_.residual()}, target.dtype);
  runner_.add_and_norm(rows, nullptr, weights_.front().mixer_norm);
}

const void* AssistantHead::forward(Queue& queue, const ChainPass& pass) {
  FT_CHECK(pass.max_rows > 0 && pass.max_rows <= max_rows_ && pass.tensors.seen != nullptr);
  const StepTensors& live = pass.tensors.rows;
  const LayerRows rows{queue, live.counts, pass.tensors.seen, live.row_slot, pass.max_rows};
  enter(rows, pass);
  const float* delta = nullptr;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const DecoderLayer* next = i + 1 < weights_.size() ? &weights_[i + 1] : nullptr;
    const void* x = i == 0 ? runner_.normed() : nullptr;
    delta = runner_.run(rows, layer_kv(pass, i), weights_[i], x, next);
  }
  runner_.add_and_norm(rows, delta, norm_);
  multiply(rows, runner_.normed(), post_, {states_}, target_.config().dtype);
  return runner_.normed();
}

}  // namespace

Result<std::unique_ptr<ChainHead>> load_assistant_head(Device& device, const std::string& folder,
                                                       const AssistantConfig& config, Model& target,
                                                       const DraftHeadOptions& options) {
  FT_CHECK(options.max_rows > 0);
  DraftHeadOptions complete = options;
  if (complete.attention == nullptr) {
    FT_ASSIGN_OR_RETURN(complete.attention, find_attention_backend("auto", device));
  }
  if (!can_share_context(config.layer, options.sharding)) {
    return invalid_argument("the assistant's heads or hidden size do not divide among the " +
                            std::to_string(options.sharding.context.size) +
                            " ranks of --decode-context-parallel-size; leave it out");
  }
  FT_ASSIGN_OR_RETURN(
      const ModelConfig part,
      shard_config(config.layer, options.sharding, "the assistant's tensor parallel size of"));
  auto head = std::make_unique<AssistantHead>(device, config, part, target, complete);
  FT_RETURN_IF_ERROR(head->load({device, folder, target, complete}));
  FT_RETURN_IF_ERROR(head->take_scratch());
  return std::unique_ptr<ChainHead>(std::move(head));
}

Result<ChainFiles> read_assistant_files(const std::string& folder, const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const AssistantConfig config, read_assistant_config(folder, target));
  return ChainFiles{
      kMaxChain,
      [folder, config](Device& device, Model& of, int32_t, const DraftHeadOptions& options) {
        return load_assistant_head(device, folder, config, of, options);
      },
      config.layer.max_context};
}

}  // namespace foretoken
