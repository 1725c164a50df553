#pragma once
#include <memory>

#include "base/result.h"
#include "model/config/architecture.h"
#include "model/model.h"
#include "model/registry.h"

namespace foretoken {

// Where a decoder comes from, and what makes it one architecture's rather than another's.
struct DecoderSource {
  const ModelFiles& files;
  const ModelConfig& config;
  const DecoderTraits& traits;
};

// The decoder that all architectures share: the layers that they compose (model/layer/layer_spec.h)
// around a residual stream in float. Loads the weights and takes the scratch; errors as in
// load_model. The traits outlive the model.
Result<std::unique_ptr<Model>> load_decoder(Device& device, const DecoderSource& source,
                                            WeightLoader& loader, const LoadOptions& options);

}  // namespace foretoken
