#pragma once
#include <functional>
#include <string>

#include "model/config/architecture.h"
#include "model/config/config.h"

namespace foretoken {

// Whether a checkpoint holds a tensor of that name.
using HasTensor = std::function<bool(const std::string& name)>;

// Where a checkpoint keeps the tensors of the decoder.
DecoderTraits::Place find_place(const DecoderTraits& traits, const HasTensor& has);

// Name of the embedding.
std::string embedding_name(const DecoderTraits& traits, const DecoderTraits::Place& place);

// Name of the output matrix: that of the embedding where they are tied.
std::string output_matrix_name(const ModelConfig& config, const DecoderTraits& traits,
                               const DecoderTraits::Place& place);

// Name of what is added behind it.
std::string bias_name(const DecoderTraits::Place& place);

// Behind a place's body: the table of embeddings for each layer (Gemma 3n).
inline constexpr const char* kLayerInputTable = "embed_tokens_per_layer.weight";

// Whether rows of the tensor are looked up alone, and it is no matrix of a product as well.
bool is_looked_up(const std::string& name, const ModelConfig& config, const DecoderTraits& traits,
                  const DecoderTraits::Place& place);

}  // namespace foretoken
