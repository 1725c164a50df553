#pragma once
#include <cstdint>

#include "attention/backend.h"
#include "base/result.h"
#include "device/arena.h"
#include "device/queue.h"
#include "kernels/attention.h"
#include "kernels/rope_kv.h"
#include "kernels/step_types.h"
#include "model/config.h"
#include "model/decoder_weights.h"
#include "model/sharding.h"
#include "model/weight_loader.h"

namespace foretoken {

// A rope table in device memory; without frequencies nothing turns.
struct DeviceRope {
  const float* inv_freq = nullptr;
  int32_t rotary_dim = 0;
  float scaling = 1;
};

// The table of make_rope_table, in `arena`.
Result<DeviceRope> upload_rope(const RopeConfig& rope, int32_t max_model_len, Arena& arena,
                               WeightLoader& loader);

// The rows of a forward pass; in device memory.
struct LayerRows {
  Queue& queue;
  const StepCounts* counts;
  const int32_t* positions;  // [max_rows]
  const int32_t* row_slot;   // [max_rows]
  int32_t max_rows;
  RunLengths runs = RunLengths::kUnknown;
};

// Where a layer keeps the keys and values of the rows, and what it sees of them.
struct LayerKv {
  KvLayer kv;
  const int32_t* kv_slot;       // [max_rows]
  const int32_t* block_tables;  // [slots, max_blocks]
  int32_t max_blocks;
  DeviceRope rope;
  int32_t window = 0;          // as of AttentionArgs
  int32_t kv_begin = 0;        // as of AttentionArgs
  int32_t position_shift = 0;  // as of RopeKvArgs
  bool repeats = false;        // as of AttentionArgs
};

// Runs decoder layers, or this rank's part of them, around a residual stream in float:
// grouped-query attention and a gated MLP, for targets, draft models and draft heads. Holds their
// scratch; a layer's weights come with each call. Only enqueues ops. Rows depend on nothing but
// themselves and what their positions see.
class LayerRunner {
 public:
  // `config`: of this rank's part (shard_config); outlives the runner.
  LayerRunner(Device& device, const ModelConfig& config, const AttentionBackend& attention,
              int32_t max_rows, const Sharding& sharding = {})
      : device_(device),
        config_(config),
        attention_(attention),
        max_rows_(max_rows),
        sharding_(sharding) {}

  // Takes the buffers from `arena`; post_norms as of DecoderTraits.
  Status take_scratch(Arena& arena, bool post_norms);

  float* residual() const { return residual_; }  // [max_rows, hidden]
  void* normed() const { return normed_; }       // [max_rows, hidden] of the config's type

  // residual += delta (when given); normed = norm(residual) * weight.
  void add_and_norm(const LayerRows& rows, const float* delta, const float* weight);
  // The same for other rows of the hidden size: `residual` is floats.
  struct NormOutput {
    void* rows;
    DType dtype;
  };
  void norm_rows(const LayerRows& rows, float* residual, const float* delta, const float* weight,
                 NormOutput out);

  // Attention over x [max_rows, layer.attention_inputs] of the config's type, added to the
  // residual, then the MLP. Returns what is still to be added to the residual, valid until the next
  // call; null: nothing. With `next`, the layer that the same rows enter at once, its input norm
  // and queries, keys and values are computed too, and its own call gets a null x.
  const float* run(const LayerRows& rows, const LayerKv& kv, const DecoderLayerWeights& layer,
                   const void* x, const DecoderLayerWeights* next = nullptr);

  // y = x weight^T + bias, or added to y: y [max_rows, n] floats, x [max_rows, k] of the config's
  // type.
  struct Product {
    float* rows;
    bool adds = false;
  };
  void multiply(const LayerRows& rows, const void* x, const PackedWeight& weight, const float* bias,
                Product y, int32_t n, int32_t k);

 private:
  void project(const LayerRows& rows, const DecoderLayerWeights& layer, const void* x);
  void attend(const LayerRows& rows, const LayerKv& kv, const DecoderLayerWeights& layer);
  bool takes_tail(const LayerRows& rows, const DecoderLayerWeights& layer) const;
  const float* run_tail(const LayerRows& rows, const DecoderLayerWeights& layer,
                        const DecoderLayerWeights* next);
  const float* run_mlp(const LayerRows& rows, const DecoderLayerWeights& layer);
  // What attention or the MLP adds to the residual: x weight^T + bias, normed by post_norm (or
  // not).
  struct BlockOutput {
    const void* x;
    const PackedWeight& weight;
    const float* bias;
    int32_t inputs;
    const float* post_norm;
  };
  const float* add_block(const LayerRows& rows, const BlockOutput& block);

  int32_t q_size() const { return config_.num_heads * config_.head_dim; }
  int32_t qkv_size() const { return q_size() + 2 * config_.num_kv_heads * config_.head_dim; }

  Device& device_;
  const ModelConfig& config_;
  const AttentionBackend& attention_;
  const int32_t max_rows_;
  const Sharding sharding_;
  // "act" stands for the type of the config.
  float* residual_ = nullptr;   // [max_rows, hidden]
  void* normed_ = nullptr;      // [max_rows, hidden] act
  float* qkv_ = nullptr;        // [max_rows, qkv size]
  void* q_ = nullptr;           // [max_rows, q size] act
  void* attended_ = nullptr;    // [max_rows, q size] act
  float* delta_ = nullptr;      // [max_rows, hidden] output of a block
  float* added_ = nullptr;      // [max_rows, hidden] the same after its own norm, where it has one
  void* gated_ = nullptr;       // [max_rows, intermediate] act
  uint32_t* sync_ = nullptr;    // of LayerTailArgs
  float* workspace_ = nullptr;  // [workspace_floats] of attention
  int64_t workspace_floats_ = 0;
  uint32_t* attention_sync_ = nullptr;  // of AttentionArgs
};

}  // namespace foretoken
