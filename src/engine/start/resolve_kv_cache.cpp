#include "engine/start/resolve_kv_cache.h"

#include "attention/backend.h"
#include "attention/flex_choice.h"
#include "base/log.h"
#include "compat/compat.h"
#include "compat/kv_format.h"
#include "model/files/kv_quantization.h"

namespace foretoken {
namespace {

// The backend that was named; null: it is chosen later.
const AttentionBackend* named_backend(const std::string& name) {
  for (const AttentionBackend* backend : attention_backends()) {
    if (is_attention_backend(*backend, read_attention_choice(name).backend)) return backend;
  }
  return nullptr;
}

}  // namespace

Result<std::string> resolve_kv_cache_dtype(const EngineConfig& config, const Device& device,
                                           const ModelFiles& target, const ModelConfig& model) {
  if (config.kv_cache_dtype != "auto") return config.kv_cache_dtype;
  FT_ASSIGN_OR_RETURN(const KvQuantization asked, read_kv_quantization(target));
  if (asked.field.empty()) return config.kv_cache_dtype;
  const std::string what = asked.field + " " + asked.value;
  const char* own = dtype_name(model.dtype);
  if (!asked.is_fp8) {
    FT_LOG(warn, "the checkpoint asks for a KV cache of {}, which is not built; it stays {}", what,
           own);
    return config.kv_cache_dtype;
  }
  const std::string fp8 = kv_format_name(KvFormat::kFp8);
  const Status fits = compat({.device = &device_traits(device.type()),
                              .attention = named_backend(config.attention_backend),
                              .kv_cache_dtype = fp8,
                              .dtype = model.dtype,
                              .latent = model.latent.exists(),
                              .compressed = model.compressed.exists()});
  if (!fits.ok()) {
    FT_LOG(info, "the checkpoint asks for a KV cache of {}; it stays {}: {}", what, own,
           fits.message());
    return config.kv_cache_dtype;
  }
  FT_LOG(info, "KV cache: {}, as the checkpoint's {} asks; --kv-cache-dtype {} leaves it aside",
         fp8, asked.field, own);
  return fp8;
}

}  // namespace foretoken
