#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/config/index_config.h"
#include "model/config/layer_pattern.h"

namespace foretoken {

// The sizes of attention to compressed entries (DeepSeek V4), as of CompressedSpec.
struct CompressedConfig {
  int32_t q_rank = 0;  // 0: the model has no such attention
  int32_t rope_dim = 0;
  int32_t groups = 1;
  int32_t o_rank = 0;
  IndexConfig index = {};

  bool exists() const { return q_rank > 0; }
};

// Gives the fields of attention to compressed entries one form in *json, whether they are those of
// published files (compress_ratios, num_hash_layers, rope_scaling, compress_rope_theta) or those
// of transformers (layer_types, compress_rates, mlp_layer_types, rope_parameters by main and
// compress): `compress_ratios`, `chooses` and `hashes`, lists with an entry for each layer, and
// rope_parameters by full_attention, of layers that compress, and sliding_attention.
// InvalidArgument names the field at fault.
Status translate_compressed(const ConfigFields& fields, nlohmann::json* json);

// Reads what that left, and the sizes, of heads of head_dim elements. Unsupported names the size
// that no kernel takes.
Result<CompressedConfig> read_compressed_config(const ConfigFields& fields, int32_t head_dim,
                                                int32_t num_heads,
                                                std::vector<LayerConfig>* layers);

}  // namespace foretoken
