#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "model/architecture.h"
#include "model/config.h"
#include "model/sharding.h"
#include "model/stages.h"
#include "model/weight_loader.h"

namespace foretoken {

// Null: the model has none. Norm weights are ready to multiply: an offset is already added.
struct DecoderLayerWeights {
  const float* input_norm = nullptr;  // [hidden]
  int32_t attention_inputs = 0;       // hidden; twice that where a draft head pairs two rows
  PackedWeight qkv;                   // [q, k and v heads, attention_inputs]
  const float* qkv_bias = nullptr;
  const float* q_norm = nullptr;  // [head_dim]
  const float* k_norm = nullptr;
  PackedWeight o;  // [hidden, q heads]
  const float* o_bias = nullptr;
  const float* attention_post_norm = nullptr;  // [hidden] of what attention adds
  const float* mlp_norm = nullptr;             // [hidden]
  PackedWeight gate_up;                        // [2 * intermediate, hidden] as kGateUp
  const float* gate_up_bias = nullptr;
  PackedWeight down;  // [hidden, intermediate]
  const float* down_bias = nullptr;
  const float* mlp_post_norm = nullptr;  // [hidden] of what the MLP adds
};

// What sets a layer of a draft head apart from a decoder's.
struct LayerForm {
  bool input_norm = true;
  int32_t attention_inputs = 0;  // 0: hidden_size
};

// Loads layers, and what has the same form, under the names of Hugging Face, or a rank's part of
// them; `arena` holds what is not packed. `config` is that of the whole model. Everything outlives
// it. Errors as of WeightLoader.
class LayerLoader {
 public:
  LayerLoader(Arena& arena, const ModelConfig& config, const DecoderTraits& traits,
              WeightLoader& loader, const Sharding& sharding = {})
      : arena_(arena), config_(config), traits_(traits), loader_(loader), sharding_(sharding) {}

  // The layer whose tensors begin with `base`, for example "model.layers.3.".
  Status load(const std::string& base, const LayerForm& form, DecoderLayerWeights* layer);
  Status load_norm(const std::string& name, int32_t size, const float** out);
  // `parts` without the endings ".weight" and ".bias".
  Status load_linear(std::vector<TensorPart> parts, int64_t cols, bool has_bias,
                     PackedWeight* weight, const float** bias,
                     WeightOrder order = WeightOrder::kPlain) {
    return load_columns(std::move(parts), {cols, 0, cols}, has_bias, weight, bias, order);
  }

 private:
  Status load_norms(const std::string& base, const LayerForm& form, DecoderLayerWeights* layer);
  Status load_attention(const std::string& base, DecoderLayerWeights* layer);
  Status load_mlp(const std::string& base, DecoderLayerWeights* layer);
  std::vector<TensorPart> qkv_parts(const std::string& base) const;
  Status load_columns(std::vector<TensorPart> parts, const ColumnRange& cols, bool has_bias,
                      PackedWeight* weight, const float** bias, WeightOrder order);
  // A matrix [hidden, inputs] of which each rank has a part of the inputs; its bias counts once.
  Status load_summed(const std::string& name, int64_t inputs, bool has_bias, PackedWeight* weight,
                     const float** bias);

  Arena& arena_;
  const ModelConfig& config_;
  const DecoderTraits& traits_;
  WeightLoader& loader_;
  const Sharding sharding_;
};

// Where a checkpoint keeps the tensors of the decoder.
DecoderTraits::Place find_place(const DecoderTraits& traits, const WeightLoader& loader);

// Name of the output matrix: that of the embedding where they are tied.
std::string output_matrix_name(const ModelConfig& config, const DecoderTraits::Place& place);

// The weights of a decoder's stage in device memory.
struct DecoderWeights {
  // [vocab, hidden] of the model's type; the first stage's, and of others that lend it to drafters.
  const void* embedding = nullptr;
  std::vector<DecoderLayerWeights> layers;  // of all layers; those of other stages are empty
  // The last stage's. The head has this rank's part of the vocabulary, [part, hidden]; it is a copy
  // of the embedding where they are tied.
  const float* final_norm = nullptr;
  PackedWeight head;
};

// Numbers in the weights of the whole model, those of a tied head once.
int64_t num_decoder_weights(const ModelConfig& config, const DecoderTraits& traits);

// Bytes that a stage's weights take in device memory, in the type the config names; `config` is
// that of the rank's part (shard_config).
int64_t decoder_weight_bytes(const ModelConfig& config, const DecoderTraits& traits,
                             const Sharding& sharding = {}, const Stages& stages = {});

// Whether a matrix of the checkpoint is packed by this stage; by its name alone.
bool stage_packs(const Stages& stages, int32_t num_layers, const std::string& name);

// Loads what the stage uses under the names of Hugging Face; `arena` holds what is not packed.
// `config` is that of the whole model; the embedding is whole on every rank that has it. Errors as
// of WeightLoader; a tensor outside of layers that another stage has is missed here too.
Result<DecoderWeights> load_decoder_weights(Arena& arena, const ModelConfig& config,
                                            const DecoderTraits& traits, WeightLoader& loader,
                                            const Sharding& sharding = {},
                                            const Stages& stages = {});

// The embedding [vocab, hidden] alone, in memory of `arena`. files: null for random weights.
// Blocks until it is there. Errors as of WeightLoader.
Result<const void*> load_embedding(Device& device, Arena& arena, const ModelFiles* files,
                                   const ModelConfig& config, const DecoderTraits& traits);

}  // namespace foretoken
