#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/dtype.h"
#include "gguf/model_files.h"
#include "kernels/activation.h"
#include "model/config/compressed_config.h"
#include "model/config/distance_config.h"
#include "model/config/expert_config.h"
#include "model/config/index_config.h"
#include "model/config/latent_config.h"
#include "model/config/layer_pattern.h"
#include "model/config/recurrent_config.h"
#include "model/config/rope_config.h"

namespace foretoken {

// Queries at position p are multiplied by 1 + beta log(1 + floor(p / context)), so that attention
// stays sharp over long contexts (llama_4_scaling_beta).
struct QueryGrowth {
  float beta = 0;  // 0: they are not
  int32_t context = 1;
};

// Streams of hidden states of which layers work on one and move the others (AltUp, Baykal et al.
// 2023; Gemma 3n).
struct StreamConfig {
  int32_t count = 1;    // 1: an ordinary residual
  int32_t active = 0;   // the one that layers work on
  bool scaled = false;  // a vector multiplies it where a layer mixes in its own embedding
  bool exist() const { return count > 1; }
};

// Streams of hidden states that each part of a layer reads as one and gives its output to
// (manifold-constrained hyper-connections, Xie et al. 2026; kernels/rows/fold_streams.h).
struct HyperConfig {
  int32_t count = 1;  // 1: an ordinary residual
  // In which what streams give to each other is balanced; 0: they give nothing (Hy4).
  int32_t rounds = 0;
  float eps = 0;
  float gift = 2;  // as of FoldStreamsArgs
  // Names in the checkpoint before "fn", "base" and "scale": behind those of a layer, and the
  // body's.
  const char* of_mixer = "hc_attn_";
  const char* of_feed_forward = "hc_ffn_";
  const char* of_end = "hc_head_";  // null: the mean of all streams leaves
  bool exist() const { return count > 1; }
};

// What layers with a block in common add to its products, of low rank (Zamba 2).
struct AdapterConfig {
  int32_t rank = 0;           // 0: layers have no blocks in common
  bool of_attention = false;  // and not to those of the MLP alone
};

// What config.json and generation_config.json say about a decoder-only model.
struct ModelConfig {
  std::string architecture;  // for example "LlamaForCausalLM"
  int32_t vocab_size = 0;
  int32_t added_ids = 0;       // the last of these, whose rows adapters alone have
  int32_t embedding_rows = 0;  // of its table in files, of which the first count; 0: own_ids()
  int32_t hidden_size = 0;
  int32_t embedding_size = 0;  // of narrower rows in its table; 0: hidden_size
  int32_t intermediate_size = 0;
  int32_t num_layers = 0;
  // How often the layers of the files run one behind the other, each time with keys and values of
  // their own; num_layers counts all of these. And whether the last norm stands behind each time.
  int32_t num_loops = 1;
  bool norms_loops = false;
  int32_t num_mtp_modules = 0;  // num_nextn_predict_layers: draft layers after the num_layers
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t max_position_embeddings = 0;
  int32_t max_context = 0;      // longest sequence, with what a rope scaling adds
  float rms_norm_eps = 0;       // of all norms
  float post_norm_eps = 0;      // of those behind a part; 0: as all
  float attention_scale = 0;    // of scores; 1 / sqrt(head_dim) unless the model says otherwise
  float attention_softcap = 0;  // of scores; 0: none
  float logits_softcap = 0;     // 0: none
  float logits_scale = 1;       // before the soft cap
  float embedding_scale = 1;
  float residual_scale = 1;  // of what a part adds to the residual
  // Of what attention adds, of gates before their activation, and of what MLPs add (Falcon H1).
  float attention_out_scale = 1;
  float gate_scale = 1;
  float mlp_out_scale = 1;
  // Of what linear attention adds, and of the residual that it and attention, and MLPs, are added
  // to (MiniMax 01).
  float linear_out_scale = 1;
  float linear_residual_scale = 1;
  float attention_residual_scale = 1;
  float mlp_residual_scale = 1;
  Activation activation = Activation::kSilu;
  bool tie_word_embeddings = false;
  bool attention_bias = false;      // of q, k and v
  bool attention_out_bias = false;  // of what attention adds; as attention_bias unless said
  bool mlp_bias = false;
  bool head_bias = false;       // of the output matrix
  bool normed_head = false;     // its rows are divided by their lengths (Baichuan 2)
  bool last_norm = true;        // there is one before it
  bool rms_norms = false;       // norms are of root mean squares, whatever the architecture has
  bool norms_sums = false;      // norms are of the residual behind a part (OPT-350m)
  bool norms_residual = false;  // as of LayerSpec
  bool bidirectional = false;   // rows see those behind them, so that no text is written
  // Windows of rows that do are of as many positions behind a row as before it.
  bool both_ways_windows = false;
  // Ids so much higher stand for the same words in the second text of a pair; 0: pairs are one
  // text.
  int32_t second_text_ids = 0;
  bool qk_norm = false;             // q and k are normed, where architectures leave it to the file
  bool qk_norm_is_wide = false;     // all heads of a row together (QkNorm::kWidth)
  bool norms_behind = false;        // of what parts add instead of before them, where left to it
  bool head_gates = false;          // each head has one gate, where left to the file
  bool parallel_blocks = false;     // attention and MLP read the same rows, where left to the file
  bool parallel_norms = false;      // and each through a norm of its own (Falcon)
  std::vector<float> alibi_slopes;  // [num_heads], as of AttentionArgs; empty: none
  int32_t distance_buckets = 0;     // rows of GqaSpec::distance_bias; 0: there is none
  DistanceConfig distances;         // of disentangled attention
  float qkv_clip = 0;               // of q, k and v, as of GqaSpec
  int32_t value_head_dim = 0;       // as of GqaSpec, and so are the next
  float value_scale = 1;
  bool full_sinks = false;        // layers without a window have sinks (MiMo V2)
  bool windowed_sinks = false;    // and those with one
  bool averages_experts = false;  // the mean of experts and what all rows share, not the sum
  int32_t attention_chunk = 0;    // of layers with rotary positions, as of GqaSpec
  QueryGrowth query_growth;
  bool keys_are_values = false;  // of layers without a window (Gemma 4)
  // Fused projections hold all queries, then all keys and values, and no matrix lies transposed,
  // whatever folders of the architecture have: so do GGUF files.
  bool plain_matrices = false;
  // Of a model around it the files hold other parts, which are passed over (text_part.h).
  bool is_text_part = false;
  bool usual_mlp = false;  // an MLP has Llama's names where folders have others
  // Rows of a table of positions that is added to the embeddings, and the row of position 0 (GPT-2,
  // OPT); 0 rows: there is none.
  int32_t learned_positions = 0;
  int32_t first_position_row = 0;
  int32_t layer_input_size = 0;   // width of an embedding for each layer; 0: there is none
  int32_t layer_input_vocab = 0;  // rows of its table
  StreamConfig streams;
  int32_t row_gate_rank = 0;     // as of RowGateSpec, of the norms before parts (A.X K2)
  int32_t depth_block = 0;       // layers of a block of DepthSpec; 0: there are none
  int32_t laurel_rank = 0;       // of a learned path around each mixer (Gemma 3n); 0: none
  bool rounds_to_int8 = false;   // rows that matrices of layers multiply (RowRounding::kInt8)
  DType dtype = DType::kF32;     // of weights, activations and KV
  ExpertConfig experts;          // of the layers that have some
  LatentConfig latent;           // of attention
  BlockIndexConfig block_index;  // of layers that choose blocks
  CompressedConfig compressed;   // the same
  HyperConfig hyper;
  AdapterConfig adapters;
  RecurrentConfig recurrent;        // of the layers that have it in the place of attention
  std::vector<LayerConfig> layers;  // [num_layers]
  RopeConfigs rope;
  std::vector<int32_t> eos_token_ids;

  // Whether rows of some layers attend to what an indexer chooses.
  bool is_sparse() const { return latent.index.exists() || block_index.exists(); }
  // Layers that have weights of their own.
  // Those of the files.
  int32_t own_ids() const { return vocab_size - added_ids; }
  int32_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  int32_t num_stored_layers() const { return num_layers / num_loops; }
  // Lets all layers run so many times, with the last norm between, too, or not.
  void repeat_layers(int32_t loops, bool norms) {
    const std::vector<LayerConfig> once = layers;
    for (int32_t i = 1; i < loops; ++i) layers.insert(layers.end(), once.begin(), once.end());
    num_layers *= loops;
    num_loops = loops;
    norms_loops = loops > 1 && norms;
  }
  // Blocks of depth_block layers, the last of which may be shorter.
  int32_t num_depth_blocks() const {
    return depth_block > 0 ? (num_layers + depth_block - 1) / depth_block : 0;
  }
  // Whether they begin again with this one, behind a norm.
  bool begins_loop(int32_t layer) const {
    return norms_loops && layer > 0 && layer % num_stored_layers() == 0;
  }
};

// What a user may change about the files.
struct ConfigOptions {
  // "auto" (what the config names; float16 is widened to float32), "float32", "float", "bfloat16".
  std::string dtype = "auto";
  std::string hf_overrides;  // JSON object that is merged, also inside objects, over config.json
  int32_t added_ids = 0;     // as of ModelConfig
  bool is_drafters = false;  // --hf-overrides do not reach it
};

// Reads config.json of a model and, for the EOS ids, generation_config.json where it exists.
// Unsupported names an unknown architecture, rope type, activation or quantisation and lists what
// exists; InvalidArgument names a missing or ill-typed field.
Result<ModelConfig> read_model_config(const ModelFiles& model, const ConfigOptions& options);

// The same from parsed files; `where` is named in messages.
Result<ModelConfig> parse_model_config(const nlohmann::json& config,
                                       const nlohmann::json& generation_config,
                                       const ConfigOptions& options, const std::string& where);

}  // namespace foretoken
