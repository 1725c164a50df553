#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/decoder_plan.h"
#include "model/lora_pool.h"
#include "model/model.h"
#include "model/stack/decoder_layer.h"
#include "model/weights/sharding.h"
#include "model/weights/stages.h"
#include "model/weights/tensor_places.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// As find_place of model/weights/tensor_places.h, of what a loader has.
DecoderTraits::Place find_place(const DecoderTraits& traits, const WeightLoader& loader);

// The weights of a decoder's stage in device memory.
struct DecoderWeights {
  // [own ids, hidden]; the first stage's, and of others that lend it to drafters. Its rows may be
  // those of `head`.
  RowTable embedding;
  // That has the rows where these stay quantised and are no head's.
  std::shared_ptr<PackedWeight> embedding_weight;
  Norm embedding_norm;  // the first stage's; without weights: there is none
  // Of all layers that files hold; those of other stages are empty.
  std::vector<DecoderLayer> layers;
  // The last stage's; the norm also of others where it stands before layers that run again. The
  // head has this rank's part of the vocabulary, [part, hidden]; where they are tied it lends its
  // rows to the embedding or is a copy of it.
  Norm final_norm;
  PackedWeight head;
  const float* head_bias = nullptr;  // [part] or null; minus infinity for ids that adapters add
  // The two as adapters see them, without weights: where they come from, under the names that they
  // have in a whole model; without outputs where the stage has them not.
  Linear adapted_embedding;
  Linear adapted_head;
  // Beginnings of names in the files that the text part has not.
  std::vector<std::string> other_parts;
};

// The matrices of the stage that adapters may change.
std::vector<AdaptedLinear> adapted_linears(DecoderWeights& weights);
// What a pool of these adapters is to have room for, but for rows and stages.
LoraPool::Limits adapter_limits(const DecoderWeights& weights, const ModelConfig& config,
                                const AdapterRoom& room);

// Numbers in the weights of the whole model, those of a tied head once.
int64_t num_decoder_weights(const ModelConfig& config, const DecoderTraits& traits);

// Bytes that a stage's weights take in device memory, in the type the config names, where a tied
// head is packed beside the table; `config` is that of the rank's part (shard_config).
int64_t decoder_weight_bytes(const ModelConfig& config, const DecoderTraits& traits,
                             const Sharding& sharding = {}, const Stages& stages = {});

// Whether the head of a rank that has one has all rows of the embedding as they are.
bool head_has_embedding(const ModelConfig& config, const Sharding& sharding);

// Whether a matrix of the checkpoint is packed by this stage; by its name alone.
bool stage_packs(const Stages& stages, const ModelConfig& config, const DecoderTraits& traits,
                 const std::string& name);

// Whether the stage runs a layer of the files, at least once.
bool runs_layer(const Stages& stages, const ModelConfig& config, int32_t stored_layer);

// Loads what the stage uses under the names of Hugging Face; `arena` holds what is not packed.
// `config` is that of the whole model; the embedding is whole on every rank that has it. Errors as
// of WeightLoader; a tensor outside of layers that another stage has is missed here too.
Result<DecoderWeights> load_decoder_weights(Arena& arena, const ModelConfig& config,
                                            const DecoderTraits& traits, WeightLoader& loader,
                                            const Sharding& sharding = {},
                                            const Stages& stages = {});

// As of Model::lent_kv, of a stage's layers: `layers` as of DecoderWeights.
std::optional<LentKv> lend_kv(const ModelConfig& config, const DecoderPlan& plan,
                              const Stages& stages, std::span<const DecoderLayer> layers,
                              bool windowed);

// What embeddings are multiplied by.
float embedding_scale(const ModelConfig& config, const DecoderTraits& traits);

// The embedding [own ids, hidden] where it lies in the head; none where it does not, or where the
// device does not look rows up there.
RowTable rows_of_head(const DecoderWeights& weights, const ModelConfig& config,
                      const Sharding& sharding);

// The embedding [own ids, hidden] alone, in memory of `arena`. files: null for random weights.
// Blocks until it is there. Errors as of WeightLoader.
Result<RowTable> load_embedding(Device& device, Arena& arena, const ModelFiles* files,
                                const ModelConfig& config, const DecoderTraits& traits);

}  // namespace foretoken
