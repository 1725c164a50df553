#include <algorithm>

#include "draft/registry.h"
#include "engine/engine_impl.h"
#include "engine/start/resolve_config.h"
#include "model/config/config.h"

namespace foretoken {

Result<const AttentionBackend*> EngineImpl::take_attention(const ResolvedConfig& config,
                                                           const ModelFiles& target) {
  const AttentionChoice& choice = config.attention;
  if (!choice.has_expressions()) return find_attention_backend(choice.backend, *device_);
  FT_ASSIGN_OR_RETURN(const ModelConfig model, read_model_config(target, config_options(config)));
  FlexHeads heads{{model.head_dim}};
  const auto is_language_model = [](const SpeculativeConfig& each) {
    return declared_traits(each.method).maps_vocabulary;
  };
  heads.among_chosen =
      model.block_index.exists() ||
      std::any_of(config.speculative.begin(), config.speculative.end(), is_language_model);
  for (const LayerConfig& layer : model.layers) {
    if (layer.head_dim > 0) heads.sizes.push_back(layer.head_dim);
  }
  // Layers of drafters are not known yet, and ranks that share positions take the other kernel.
  heads.are_all = config.speculative.empty() && !ranks_.sharding().context.are_several();
  FT_ASSIGN_OR_RETURN(
      flex_, FlexAttention::create(choice, *device_, model.dtype, config.kv_format, heads));
  return &flex_->backend();
}

}  // namespace foretoken
