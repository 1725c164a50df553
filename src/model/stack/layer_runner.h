#pragma once
#include <cstdint>

#include "attention/backend.h"
#include "base/result.h"
#include "device/arena.h"
#include "model/config/config.h"
#include "model/layer/layer_rows.h"
#include "model/stack/carried_rows.h"
#include "model/stack/decoder_layer.h"
#include "model/weights/sharding.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// The table of make_rope_table, in `arena`.
Result<DeviceRope> upload_rope(const RopeConfig& rope, int32_t max_model_len, Arena& arena,
                               WeightLoader& loader);

// Runs decoder layers, or this rank's part of them, around a residual stream in float, for targets,
// draft models and draft heads: what the parts of a layer have between them. Holds their scratch; a
// layer's weights come with each call. Only enqueues ops. Rows depend on nothing but themselves and
// what their positions see.
class LayerRunner {
 public:
  // `config` outlives the runner. kv_block_size: positions of the blocks of the KV caches that
  // `run` is given, or a number that divides it.
  LayerRunner(Device& device, const ModelConfig& config, const AttentionBackend& attention,
              int32_t max_rows, const Sharding& sharding = {}, int32_t kv_block_size = 1)
      : device_(device),
        config_(config),
        attention_(attention),
        max_rows_(max_rows),
        sharding_(sharding),
        kv_block_size_(kv_block_size) {}

  // What rows have beside the residual; outlives the runner.
  void set_carried(CarriedRows* carried) {
    carried_ = carried;
    hyper_ = &carried->hyper;
  }
  // The streams alone, or null; outlives the runner.
  void set_hyper(HyperStreams* streams) { hyper_ = streams; }
  // Makes room for a layer; for all of them, before take_scratch.
  void fit(const DecoderLayer& layer);
  // And for rounded rows of up to so many columns (LayerRows::rounded); 0: there are none.
  void fit_rounded(int64_t columns) { rounded_columns_ = columns; }
  // Takes the buffers from `arena`. second_lane: a runner of the same layers for the rows of
  // another lane, whose residual, normed rows and what `run` returns lie max_rows rows behind this
  // one's.
  Status take_scratch(Arena& arena, LayerRunner* second_lane = nullptr);

  float* residual() const { return residual_; }  // [max_rows, hidden]
  void* normed() const { return normed_; }       // [max_rows, hidden] of the config's type

  void* rounded() const { return rounded_; }  // as of LayerRows

  const AttentionBackend& attention() const { return attention_; }
  // What the norms of hidden states have in common.
  NormSize norm_size() const {
    return {config_.hidden_size, config_.rms_norm_eps, config_.residual_scale};
  }
  // residual += delta (when given); normed = norm(residual).
  void add_and_norm(const LayerRows& rows, const float* delta, const Norm& norm);
  // The same with what else becomes of the residual before a layer, whose norm it is.
  void enter(const LayerRows& rows, const float* delta, const DecoderLayer& layer);
  // Keeps the residual as what embeddings leave, where layers read that beside it; before any
  // layer.
  void keep_embeddings(const LayerRows& rows);
  // What the last norm reads becomes the residual, to which `delta` is still to be added, or null;
  // true: it has been.
  bool leave_layers(const LayerRows& rows, const float* delta) {
    return carried_->end(rows, residual_, delta);
  }
  // Enqueues that the residual alone goes over the cut;
  void cross_residual(const LayerRows& rows, const StageCut& cut);
  // or all that layers behind it read of the rows.
  void cross(const LayerRows& rows, const StageCut& cut);
  // residual = norm(residual + delta).
  void norm_residual(const LayerRows& rows, const float* delta, const Norm& norm);

  // The mixer over x, rows of the config's type that are as wide as it reads, added to the
  // residual, then the feed-forward part. Returns what is still to be added to the residual, valid
  // until the next call; null: nothing. With `next`, the layer that the same rows enter at once,
  // its norm and queries, keys and values are computed too, and its own call gets a null x.
  const float* run(const LayerRows& rows, const LayerKv& kv, const DecoderLayer& layer,
                   const void* x, const DecoderLayer* next = nullptr);

  // The keys and values of x alone, of a layer with grouped-query attention; the residual stays.
  void keep_entries(const LayerRows& rows, const LayerKv& kv, const DecoderLayer& layer,
                    const void* x);

 private:
  // With what its ranks have in common.
  LayerRows with_ranks(LayerRows rows) const {
    rows.ranks = sharding_.is_cut() ? &ranks_ : nullptr;
    return rows;
  }
  Status take_rows(Arena& arena, int32_t num_rows);
  void take_rows_behind(const LayerRunner& first);
  Status take_parts(Arena& arena);

  // What the fused op of few rows knows: grouped-query attention, then a gated MLP, with a norm
  // of root mean squares before each and none behind.
  struct TailLayer {
    const Gqa* mixer = nullptr;
    const GatedMlp* feed_forward = nullptr;
  };
  TailLayer tail_of(const LayerRows& rows, const DecoderLayer& layer) const;
  bool runs_tails(const LayerRows& rows) const;
  const float* run_tail(const LayerRows& rows, const TailLayer& tail, const DecoderLayer& layer,
                        const DecoderLayer* next);
  bool norms_behind(const LayerRows& rows, const DecoderLayer& layer,
                    const DecoderLayer* next) const;
  bool norms_behind_mixer(const DecoderLayer& layer) const;
  const float* run_parts(const LayerRows& rows, const LayerKv& kv, const DecoderLayer& layer,
                         const DecoderLayer* next);
  const void* shifted(const LayerRows& rows, const LayerState& state, const DecoderLayer& layer);
  const float* mixer_output(const LayerRows& rows, const DecoderLayer& layer);
  void enter_feed_forward(const LayerRows& rows, const float* delta, const DecoderLayer& layer,
                          bool sums_next);
  void finish(const LayerRows& rows, const DecoderLayer& layer, const float* delta);
  const float* run_beside(const LayerRows& rows, const DecoderLayer& layer);
  const float* add_side(const LayerRows& rows, const LinearMixer& side);
  void join_laurel(const LayerRows& rows, const float* delta);
  void scale_residual(const LayerRows& rows, float scale);
  void replace_residual(const LayerRows& rows, const float* delta, const Norm& norm, float scale);
  void run_shortcut(const LayerRows& rows, const DecoderLayer& layer);
  void give_to_streams(const LayerRows& rows);
  void run_between_streams(const LayerRows& rows, const DecoderLayer& layer);
  void weigh_residual(const LayerRows& rows, const float* factors);
  void enter_depth(const LayerRows& rows, const float* delta, const float* query, int32_t blocks,
                   const Norm& norm);
  void enter_shared(const LayerRows& rows, const float* delta, const DecoderLayer& layer);
  void project_shared(const LayerRows& rows, const DecoderLayer& layer);
  const float* run_shared(const LayerRows& rows, const LayerKv& kv, const DecoderLayer& layer,
                          const DecoderLayer* next);
  const float* run_parallel(const LayerRows& rows, const DecoderLayer& layer);
  void project(const LayerRows& rows, const DecoderLayer& layer, const void* x);
  Gqa::Scratch& scratch_of(const Gqa&) { return gqa_; }
  Latent::Scratch& scratch_of(const Latent&) { return latent_; }
  ShortConv::Scratch& scratch_of(const ShortConv&) { return short_conv_; }
  LinearMixer::Scratch& scratch_of(const LinearMixer&) { return linear_; }
  SelectiveMixer::Scratch& scratch_of(const SelectiveMixer&) { return selective_; }
  WkvMixer::Scratch& scratch_of(const WkvMixer&) { return wkv_; }
  Compressed::Scratch& scratch_of(const Compressed&) { return compressed_; }
  Experts::Scratch& scratch_of(const Experts&) { return experts_; }
  GatedMlp::Scratch& scratch_of(const GatedMlp&) { return gated_mlp_; }
  PlainMlp::Scratch& scratch_of(const PlainMlp&) { return plain_mlp_; }
  // The output of a mixer or a feed-forward part.
  template <class Part>
  const float* add_output(const LayerRows& rows, const Part& part, const Norm& post_norm);
  template <class Part>
  const float* add_part(const LayerRows& rows, const Part& part, const DecoderLayer& layer,
                        const Norm& post_norm);
  void sum_over_ranks(const LayerRows& rows) { sum_over_ranks(rows, delta_); }
  void sum_over_ranks(const LayerRows& rows, float* x);
  void sum_and_norm(const LayerRows& rows, const Norm& norm, bool sums_again);

  Device& device_;
  const ModelConfig& config_;
  const AttentionBackend& attention_;
  const int32_t max_rows_;
  const Sharding sharding_;
  const int32_t kv_block_size_;
  bool has_post_norms_ = false;
  bool weighs_residual_ = false;
  bool has_shortcuts_ = false;
  bool has_shifts_ = false;
  CarriedRows* carried_ = nullptr;
  HyperStreams* hyper_ = nullptr;
  // "act" stands for the type of the config.
  float* residual_ = nullptr;  // [max_rows, hidden]
  void* normed_ = nullptr;     // [max_rows, hidden] act
  float* delta_ = nullptr;     // [max_rows, hidden] output of a part
  float* added_ = nullptr;     // [max_rows, hidden] the same after its own norm, where it has one
  float* shortcut_ = nullptr;  // [max_rows, hidden] that a later layer adds, where some do
  void* shifted_ = nullptr;    // [max_rows, hidden] act, normed rows mixed with those before them
  float* zeros_ = nullptr;     // [max_rows], where vectors multiply the residual
  uint32_t* sync_ = nullptr;   // of LayerTailArgs
  int64_t rounded_columns_ = 0;
  void* rounded_ = nullptr;
  RankRows ranks_;
  Gqa::Scratch gqa_;
  Latent::Scratch latent_;
  ShortConv::Scratch short_conv_;
  LinearMixer::Scratch linear_;
  SelectiveMixer::Scratch selective_;
  WkvMixer::Scratch wkv_;
  Compressed::Scratch compressed_;
  GatedMlp::Scratch gated_mlp_;
  PlainMlp::Scratch plain_mlp_;
  Experts::Scratch experts_;
  Laurel::Scratch laurel_;
  RowGate::Scratch row_gate_;
  SharedBlock::Scratch shared_;
};

}  // namespace foretoken
