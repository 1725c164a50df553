#pragma once
#include <string>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

// What the config of a checkpoint says of the KV cache: compressed-tensors' kv_cache_scheme, or
// ModelOpt's kv_cache_scheme or kv_cache_quant_algo, in config.json or hf_quant_config.json.
struct KvQuantization {
  std::string field;  // that says it; empty: none does
  std::string value;  // as it stands in the file
  bool is_fp8 = false;
};

// InvalidArgument where a file is no JSON object.
Result<KvQuantization> read_kv_quantization(const ModelFiles& model);

}  // namespace foretoken
