#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/config/layer_pattern.h"

namespace foretoken {

// An indexer, which chooses the positions that each row of latent attention attends to (DeepSeek
// V3.2); as of IndexSpec.
struct IndexConfig {
  int32_t num_heads = 0;
  int32_t head_dim = 0;
  int32_t top = 0;  // 0: rows attend to all that they see
  bool paired = false;
  bool turns_last = false;
  float norm_eps = 1e-6f;
  int32_t pool = 1;

  bool exists() const { return top > 0; }
};

// An indexer of grouped-query attention, which chooses blocks of positions (MiniMax M3); as of
// BlockIndexSpec.
struct BlockIndexConfig {
  int32_t head_dim = 0;
  int32_t block = 0;
  int32_t top = 0;  // 0: there is none
  int32_t first = 0;
  int32_t nearest = 1;

  bool exists() const { return top > 0; }
};

// Reads sparse_attention_config, in which MiniMax's files have it, and marks the layers that choose
// blocks; nothing where it is not there or says that attention is not sparse. num_kv_heads,
// rotary_dim: of the model. InvalidArgument names the field at fault, Unsupported what no kernel
// does.
Result<BlockIndexConfig> read_block_index(const ConfigFields& fields, int32_t num_kv_heads,
                                          int32_t rotary_dim, std::vector<LayerConfig>* layers);

// Reads index_topk, index_n_heads, index_head_dim and indexer_rope_interleave; nothing where
// index_topk is not there. rope_dim: of the front of a head that turns. InvalidArgument names the
// field at fault, Unsupported the size that no kernel takes.
Result<IndexConfig> read_index_config(const ConfigFields& fields, int32_t rope_dim);

// Which layers attend to what the one before them has chosen: by indexer_types, else by
// index_topk_pattern ("F" chooses, "S" shares), else by index_topk_freq and index_skip_topk_offset.
Status read_index_sharing(const ConfigFields& fields, std::vector<LayerConfig>* layers);

}  // namespace foretoken
