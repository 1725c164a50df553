#include "engine/start/resolve_kv_cache.h"

#include "base/log.h"
#include "compat/compat.h"
#include "compat/kv_format.h"
#include "engine/start/start_parts.h"
#include "model/files/kv_quantization.h"

namespace foretoken {

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
  EngineConfig asking = config;
  asking.kv_cache_dtype = fp8;
  const Status fits = compat(parts_of(asking, device, model));
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
