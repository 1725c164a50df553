#include "engine/compat/kv_format.h"
#include "engine/engine_impl.h"
#include "model/config/config.h"

namespace foretoken {

Result<const AttentionBackend*> EngineImpl::take_attention(const EngineConfig& config,
                                                           const ModelFiles& target) {
  const AttentionChoice choice = read_attention_choice(config.attention_backend);
  if (!choice.has_expressions()) return find_attention_backend(choice.backend, *device_);
  FT_ASSIGN_OR_RETURN(const ModelConfig model,
                      read_model_config(target, {config.dtype, config.hf_overrides}));
  const Sharding sharding = ranks_.sharding();
  FT_ASSIGN_OR_RETURN(
      flex_,
      FlexAttention::create(choice, *device_, model.dtype, named_kv_format(config.kv_cache_dtype),
                            model.num_heads / sharding.size * sharding.rank));
  return &flex_->backend();
}

}  // namespace foretoken
