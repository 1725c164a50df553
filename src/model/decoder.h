#pragma once
#include <memory>

#include "base/result.h"
#include "model/architecture.h"
#include "model/model.h"
#include "model/registry.h"

namespace foretoken {

// The decoder that all architectures share: blocks of grouped-query attention and a gated MLP
// around a residual stream in float. What differs between them is data: the config and the traits.
struct DecoderSource {
  const ModelFiles& files;
  const ModelConfig& config;
  const DecoderTraits& traits;
};

// Loads the weights and takes the scratch; errors as in load_model. The traits outlive the model.
Result<std::unique_ptr<Model>> load_decoder(Device& device, const DecoderSource& source,
                                            WeightLoader& loader, const LoadOptions& options);

}  // namespace foretoken
