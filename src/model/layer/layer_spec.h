#pragma once
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "attention/kv_cache.h"
#include "kernels/activation.h"
#include "kernels/attention/gate_heads.h"
#include "kernels/attention/rope_kv.h"
#include "kernels/experts/route_experts.h"
#include "kernels/rows/fold_streams.h"
#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/layer/latent_spec.h"
#include "model/layer/layer_state.h"
#include "model/layer/linear_spec.h"
#include "model/weights/sharding.h"
#include "model/weights/tensor_part.h"

namespace foretoken {

// What a layer is made of, as plain data: a sequence mixer and a feed-forward part, each one of a
// closed list, and the norms around them. The file of an architecture in arch/ composes it from
// config.json; names, sizes, counts, loading, KV and execution all follow from it.
//
// A new mixer or feed-forward part is a spec here, a struct beside it with load, scratch and
// enqueue (gqa.h, gated_mlp.h), its tensors in layer_tensors.cpp, and a place in the variants.

// Norms of queries and keys; of root mean squares unless they say otherwise.
enum class QkNorm : uint8_t {
  kNone,
  kHead,        // each head by itself, before it turns; all with the same weights
  kTurned,      // the same, but the weights multiply heads that have turned (Hunyuan)
  kUnit,        // kHead without weights (nanochat)
  kWidth,       // all heads of a row together (OLMo 2)
  kOwn,         // layer norms without biases, each head's weights: [heads, head_dim] (Cohere)
  kOwnListed,   // the same, a tensor for each head: ".norms.<head>" behind the name (StableLM)
  kUnitScaled,  // kUnit of heads that have turned and been scaled (Llama 4)
};

// The indexer of grouped-query attention (MiniMax M3): a query of its own for each KV head meets a
// key of each position, and the head's queries attend to the blocks of positions where that is
// highest (kernels/latent/choose_blocks.h).
struct BlockIndexSpec {
  int32_t num_heads = 0;  // the KV heads of the layer
  int32_t head_dim = 0;   // of queries and of the key of a position in the KV cache
  int32_t block = 0;      // positions of a block
  int32_t top = 0;        // blocks that a row attends to; 0: there is no indexer
  int32_t first = 0;      // of these, from the beginning on,
  int32_t nearest = 1;    // and those that end with the row's own

  bool exists() const { return top > 0; }
};

// Grouped-query attention (Ainslie et al. 2023) with rotary positions.
struct GqaSpec {
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t inputs = 0;  // width of the rows that q, k and v are made of
  int32_t window = 0;  // as of LayerConfig
  bool rope = true;
  float scale = 1;    // of scores
  float softcap = 0;  // of scores; 0: none
  QkNorm qk_norm = QkNorm::kNone;
  bool qkv_bias = false;
  bool o_bias = false;
  bool fused = false;  // the tensor `qkv` instead of q_proj, k_proj and v_proj
  // Of that tensor: the query heads of a key head, it and its value head, and so on, instead of all
  // queries, all keys and all values (GPT-NeoX, Falcon).
  bool fused_by_group = false;
  bool pairs_kv = false;     // query and key_value: a head's key, then its value (TeleChat)
  int32_t fused_pieces = 0;  // or so many, each of queries, values and keys (CodeGen); 0: none
  // Leading elements of a head whose turning pairs lie side by side in the checkpoint, as in GPT-J;
  // 0: they lie half of the rotary part apart. Such heads are put in order while they are loaded.
  int32_t paired = 0;
  // Heads turn against the usual sense (nanochat): their halves change places while loaded.
  bool turns_back = false;
  int32_t chunk = 0;  // positions before its own multiple are not seen; 0: all are
  float clip = 0;     // of q, k and v; 0: none
  // Of a head of v in the checkpoint, which gets zeros behind it; 0: head_dim. And its factor.
  int32_t value_dim = 0;
  float value_scale = 1;
  float out_scale = 1;           // of what o leaves
  bool values_normed = false;    // each head of v by root mean squares, without weights (Gemma 4)
  bool keys_are_values = false;  // v is k before its norm, and there is no v_proj
  // The layer whose keys and values are read; then only queries are made. -1: its own.
  int32_t kv_of = -1;
  // Of differential attention (Ye et al. 2024): of two heads each, what the second attends to is
  // taken from the first's, times a number that is learned around this one, and the difference is
  // normed without weights; 0: heads are heads. Key heads are then pairs: keys h and h + K / 2 of
  // the checkpoint's K lie side by side, and so do their values, which both read. The queries of
  // the two take turns, with zeros where the other's key lies.
  float lambda_init = 0;
  // Keys add a term that their value's own says to all scores (MaskKeysArgs; Doge): heads of q, k
  // and v have value_dim elements in the checkpoint, and two of those behind them carry it. Heads
  // of q and k are normed, with weights.
  bool dynamic_mask = false;
  HeadGates gates = HeadGates::kNone;
  HeadGate gate = HeadGate::kSigmoid;
  // Of q_proj: a head's queries, then as many gates of its elements (Qwen 3 Next).
  bool gates_in_q = false;
  QueryScale query_scale = {};  // as of RopeKvArgs
  BlockIndexSpec index = {};
  std::vector<float> slopes = {};  // of all ranks' heads, as of AttentionArgs; empty: none
  // A tensor [distance_buckets, heads] of all layers that scores get (distance_bias.h); null: none.
  const char* distance_bias = nullptr;
  DistanceConfig distances = {};  // of attention to them (disentangled.h)
  // Names in the checkpoint, behind the layer's.
  const char* base = "self_attn.";
  const char* sinks = nullptr;  // [num_heads], as of AttentionArgs; null: there are none
  const char* qkv = "qkv_proj";
  const char* o = "o_proj";
  const char* sub_norm = nullptr;  // of what enters it (BitNet)
  const char* gate_proj = "gate_proj";
  const char* q_norm = "q_norm";
  const char* k_norm = "k_norm";

  int32_t q_size() const { return num_heads * head_dim; }
  int32_t kv_size() const { return num_kv_heads * head_dim; }
  // Heads of keys and values that the layer makes.
  int32_t own_kv_heads() const { return kv_of < 0 ? num_kv_heads : 0; }
  // What the checkpoint's heads of v, and the inputs of o, are widened from; no `to`: they are not.
  PaddedHeads padding(bool of_columns) const {
    if (value_dim == 0) return PaddedHeads::scaled(of_columns ? out_scale : 1, of_columns);
    return {value_dim, head_dim, of_columns, of_columns ? 1 : value_scale};
  }
  int32_t qkv_size() const { return q_size() + 2 * own_kv_heads() * head_dim; }
  bool differs() const { return lambda_init > 0; }
  // Gates of a row.
  int32_t num_gates() const {
    return gates == HeadGates::kNone ? 0 : gates == HeadGates::kEachHead ? num_heads : q_size();
  }
  // Elements of a row that enter o.
  int32_t o_size() const { return differs() ? q_size() / 2 : q_size(); }
};

// down(activation(gate x) * (up x)) (Shazeer 2020).
struct GatedMlpSpec {
  int32_t inner = 0;
  Activation activation = Activation::kSilu;
  bool bias = false;
  bool down_bias = false;          // of `down` alone
  bool fused = false;              // the tensor gate_up_proj instead of gate_proj and up_proj
  bool ups_first = false;          // in that tensor (GTE)
  float sparsity = 0;              // as of LayerConfig
  GateClamp clamp = {};            // where has_gate_numbers(activation)
  float gate_scale = 1;            // of gates, where they are not fused, before their activation
  float out_scale = 1;             // of what `down` leaves
  const char* sub_norm = nullptr;  // of what enters `down` (BitNet)
  const char* base = "mlp.";
  const char* gate_up = "gate_up_proj";
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";

  // Whether gates and ups are looked at before they meet.
  bool apart() const { return sparsity > 0 || sub_norm != nullptr || !has_gated_form(activation); }
};

// down(activation(up x)).
struct PlainMlpSpec {
  int32_t inner = 0;
  Activation activation = Activation::kGeluTanh;
  bool bias = false;
  const char* base = "mlp.";
  const char* up = "up_proj";
  const char* down = "down_proj";
};

// How a checkpoint keeps the matrices of experts.
enum class ExpertFiles : uint8_t {
  kRows,         // gate and up [E * inner, hidden], and down, transposed, of the same shape (DBRX)
  kEach,         // <base>experts.<e>.{gate_proj,up_proj,down_proj}.weight [rows, cols]
  kFused,        // gate_up [E, 2 * inner, hidden] and down [E, hidden, inner]
  kFusedTurned,  // the same, transposed: gate_up [E, hidden, 2 * inner] and down [E, inner, hidden]
};

// A mixture of experts (Shazeer et al. 2017): each row goes through top_k of `count` gated MLPs,
// and through one that all rows share.
struct ExpertsSpec {
  int32_t count = 0;
  // Experts behind those that leave rows as they are, among which the router chooses too (LongCat
  // Flash); they have no weights.
  int32_t zero_count = 0;
  int32_t top_k = 0;
  int32_t inputs = 0;        // width of the rows, which is that of what comes out
  int32_t inner = 0;         // of an expert
  int32_t shared_inner = 0;  // of the shared one; 0: there is none
  // Rows are so narrow for experts, but not for the router and the shared one; 0: they are not.
  int32_t latent = 0;
  int32_t num_engines = 1;  // whose rows come to a rank's experts
  Activation activation = Activation::kSilu;
  ExpertScore score = ExpertScore::kSoftmax;
  int32_t num_groups = 1;
  int32_t top_groups = 1;
  ExpertGroups groups = ExpertGroups::kBest;
  bool normalised = false;
  float scale = 1;
  float jitter = 0;           // as of RouteExpertsArgs
  bool weighs_input = false;  // weights multiply what enters experts instead of what leaves them
  GateClamp clamp = {};       // where has_gate_numbers(activation)
  // Of the router, ".bias", and of every expert: gate_up "_bias" [E, 2 * inner] and down "_bias"
  // [E, hidden]. Where files are not kEach.
  bool biased = false;
  bool alternates = false;  // gates and ups take turns in gate_up and its biases (gpt-oss)
  ExpertFiles files = ExpertFiles::kEach;
  // Names in the checkpoint, behind the layer's and behind `base`.
  const char* base = "mlp.";
  const char* router = "gate";       // [count, hidden]
  const char* correction = nullptr;  // [count]; null: there is none
  bool correction_is_row = false;    // [1, count]
  const char* experts = "experts.";  // before an expert's number, or the fused tensors' names
  // The gates may be the ups: with kRelu experts are then down(max(up x, 0)^2) (Nemotron 3).
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
  const char* gate_up = "gate_up_proj";  // fused; these and `down` are then whole names
  const char* shared = "shared_experts.";
  std::optional<GateClamp> shared_clamp = {};  // of the shared one, where it has one
  bool shared_bias = false;                    // of the shared one
  bool shared_fused = false;                   // the shared one has gates and ups in one tensor
  const char* shared_gate_up = "gate_up_proj";
  const char* shared_gate_proj = "gate_proj";
  const char* shared_up_proj = "up_proj";
  const char* shared_down = "down_proj";
  const char* shared_gate = nullptr;  // [1, hidden], whose sigmoid weighs the shared one
  bool halves_shared = false;         // the shared one counts half (Cohere 2)
  // [hidden]: the router reads rows by root mean squares times this, over sqrt(hidden); and
  // [count]: RouteExpertsArgs::weight_scales (Gemma 4). Null: neither.
  const char* router_scale = nullptr;
  const char* weight_scales = nullptr;
  // [vocabulary, top_k]: the experts of each token, which then are not ranked; null: they are.
  const char* table = nullptr;
  int32_t vocabulary = 0;                     // of the table
  const char* to_latent = "fc1_latent_proj";  // [latent, hidden]
  const char* of_latent = "fc2_latent_proj";  // [hidden, latent]
  const char* sum_bias = nullptr;             // [inputs] that files may add to the sum; null: none
  const char* latent_norm = nullptr;  // of the sum before it is made wide (Kimi K3); null: none

  int32_t choices() const { return count + zero_count; }
  // Of the rows that experts read and leave.
  int32_t width() const { return latent > 0 ? latent : inputs; }
};

// A mixture beside a layer's feed-forward part (Gemma 4): both read the residual, through a norm
// each, what they leave is normed each, and the layer's norm is of the sum.
struct BesideSpec {
  ExpertsSpec experts;
  const char* norm = nullptr;             // of what the experts read
  const char* post_norm = nullptr;        // of what they leave
  const char* other_post_norm = nullptr;  // of what the feed-forward part leaves
};

// A gate of each element of a normed row, made of the row: y sigmoid(up(silu(down y))) (A.X K2).
struct RowGateSpec {
  int32_t rank = 0;             // 0: there is none
  const char* down = "W_down";  // [rank, hidden], behind `base`
  const char* up = "W_up";      // [hidden, rank]
  const char* base = "";
};

// What parts read in the place of the residual (attention residuals, Kimi K3): of what entered each
// block of layers before, and what layers since have added, the mean that a learned query weighs
// (MixDepthArgs). Where a block begins, what entered it is kept and a new residual begins.
struct DepthSpec {
  bool exists = false;
  int32_t blocks = 0;  // that began before this layer
  bool begins_block = false;
  // Norm and query of what the mixer, and of what the feed-forward part, reads.
  const char* mixer_norm = "self_attention_res_norm";
  const char* mixer_query = "self_attention_res_proj";  // [1, hidden]
  const char* feed_forward_norm = "mlp_res_norm";
  const char* feed_forward_query = "mlp_res_proj";
};

// A block that layers have in common (Zamba 2): attention, the layer's mixer, reads the normed row
// with the token's embedding beside it, an MLP what that leaves, normed, and `linear`, the layer's
// own, what the MLP leaves. The layer's side reads the norm of the residual with that, which the
// residual itself never gets. Each layer adds products of low rank, its adapters.
struct SharedSpec {
  int32_t from = -1;  // the layer under whose number files have the block; -1: there is none
  int32_t use = 0;    // which of the layers with such blocks it is
  int32_t rank = 0;   // of the adapters
  bool adapts_attention = false;
  int32_t num_heads = 0;
  int32_t head_dim = 0;
  int32_t inner = 0;
  Activation activation = Activation::kGelu;
  static constexpr const char* kBlock = "shared_transformer.";

  bool exists() const { return from >= 0; }
};

// What a layer lacks.
struct Absent {};

using MixerSpec = std::variant<GqaSpec, LatentSpec, LinearSpec, ShortConvSpec, SelectiveSpec,
                               WkvSpec, CompressedSpec, Absent>;
using FeedForwardSpec = std::variant<GatedMlpSpec, PlainMlpSpec, ExpertsSpec, Absent>;

// residual += post_norm(mixer(norm(residual))), then the same with the feed-forward part; or, where
// they are parallel, both read the residual that enters the layer, through one norm or two, and
// have none behind them. Norms are named as in the checkpoint, without ".weight"; null: there is
// none, and rows pass as they are (where parallel: the feed-forward part reads what the mixer
// does).
struct LayerSpec {
  const char* mixer_norm = nullptr;
  MixerSpec mixer;
  // A mixer beside it that reads the same rows; what both leave is added (Falcon H1).
  std::optional<LinearSpec> side = {};
  const char* mixer_post_norm = nullptr;
  const char* feed_forward_norm = nullptr;
  FeedForwardSpec feed_forward;
  const char* feed_forward_post_norm = nullptr;
  float post_norm_eps = 0;                                    // of both; 0: that of all norms
  float mixer_post_offset = 0, feed_forward_post_offset = 0;  // beside NormForm's (PLaMo)
  std::optional<BesideSpec> beside = {};
  // A mixture that reads what the feed-forward part reads, whose sum is added behind the next
  // layer, which joins it (LongCat Flash).
  std::optional<ExpertsSpec> shortcut = {};
  bool joins_shortcut = false;
  bool parallel = false;
  bool norms_sums = false;  // the post norms are of the residual with what a part adds (OPT-350m)
  // What the norms before parts leave, times these, becomes the residual, too (MiniMax 01).
  bool norms_residual = false;
  float mixer_residual_scale = 1;
  float feed_forward_residual_scale = 1;
  // Vectors [hidden] that multiply the residual before a part adds to it (Doge); null: none do.
  const char* mixer_residual = nullptr;
  const char* feed_forward_residual = nullptr;
  // Behind both parts: width of the layer's own embedding of each token, which is mixed in (0:
  // there is none), and whether a stored number multiplies the residual (Gemma 4).
  int32_t input_size = 0;
  bool scaled = false;
  // Around both parts (Gemma 3n): the streams that it moves, and the rank of a path around the
  // mixer; 0: there is none.
  StreamConfig streams = {};
  int32_t laurel_rank = 0;
  HyperConfig hyper = {};  // the streams that each part reads and gives to (DeepSeek V4)
  DepthSpec depth = {};
  // Of what leaves mixer_norm and feed_forward_norm.
  RowGateSpec mixer_gate = {};
  RowGateSpec feed_forward_gate = {};
  const char* feed_forward_shift = nullptr;  // of what leaves its norm (ShiftRowsArgs); or null
  SharedSpec shared = {};
};

// The parts that most architectures begin with: sizes, biases and scales of the config.
GqaSpec gqa_of(const ModelConfig& config, const LayerConfig& layer);
GatedMlpSpec gated_mlp_of(const ModelConfig& config, const LayerConfig& layer);
PlainMlpSpec plain_mlp_of(const ModelConfig& config, const LayerConfig& layer);
LatentSpec latent_of(const ModelConfig& config, const LayerConfig& layer);
CompressedSpec compressed_of(const ModelConfig& config, const LayerConfig& layer);
ShortConvSpec short_conv_of(const ModelConfig& config);
// Gated delta networks, under Qwen's names; without a kind of files.
LinearSpec gated_delta_of(const ModelConfig& config);
SelectiveSpec selective_of(const ModelConfig& config);
WkvSpec wkv_of(const ModelConfig& config, const LayerConfig& layer);
// Mamba 2, under the names that most files have.
LinearSpec state_space_of(const ModelConfig& config);
ExpertsSpec experts_of(const ModelConfig& config);
// The same under Mixtral's names.
ExpertsSpec mixtral_experts_of(const ModelConfig& config);
// The expert that all rows share, as a part of its own; without a base.
GatedMlpSpec shared_mlp_of(const ExpertsSpec& experts);
// `experts` in the layers that have some, the gated MLP of the config in the others.
FeedForwardSpec experts_or_mlp(const ModelConfig& config, const LayerConfig& layer,
                               const ExpertsSpec& experts);
// Norms before both parts, under Llama's names: the most frequent layer.
LayerSpec pre_norm_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward);
// Norms behind both parts alone (OLMo 2, EXAONE 4).
LayerSpec post_norm_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward);
// Norms before and behind both parts, under Gemma's names.
LayerSpec sandwich_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward);
// One norm, and both parts read what leaves it (Cohere).
LayerSpec parallel_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward);
// The layer of Llama and of all that differ in numbers alone.
LayerSpec llama_layer(const ModelConfig& config, const LayerConfig& layer);

// Of Activation::kClampedSilu: gates are at most `limit` behind SiLU, and ups between -limit and it
// (Step 3.5).
GateClamp clamp_behind_silu(float limit);

// What parts learn of the streams that they read and give to.
inline StreamWeights learned_of(const HyperConfig& hyper) {
  return hyper.rounds > 0 ? StreamWeights::kMix : StreamWeights::kGive;
}

// The norms of a model: its architecture's, of root mean squares where its config.json says so.
NormForm norms_of(const ModelConfig& config, const DecoderTraits& traits);

// All layers of a config (or of a rank's part of it, shard_config), as its architecture composes
// them.
std::vector<LayerSpec> compose_layers(const ModelConfig& config, const DecoderTraits& traits);

// A rank's part of a whole model's mixer or feed-forward part: heads and inner columns are divided,
// those of experts only where they are not dealt out (shard_of_experts).
GqaSpec part_of(const GqaSpec& whole, const Sharding& sharding);
GatedMlpSpec part_of(const GatedMlpSpec& whole, const Sharding& sharding);
PlainMlpSpec part_of(const PlainMlpSpec& whole, const Sharding& sharding);
LatentSpec part_of(const LatentSpec& whole, const Sharding& sharding);
CompressedSpec part_of(const CompressedSpec& whole, const Sharding& sharding);
ExpertsSpec part_of(const ExpertsSpec& whole, const Sharding& sharding);

// What the mixers of a layer keep of each sequence beside entries of positions.
StateSpec state_of(const LayerSpec& layer);
// Whether any layer of the model does. A sequence of it begins at its first token, wherever entries
// of later positions may be.
bool keeps_states(const ModelConfig& config);

// How a mixer keeps what later rows read by position: a group of one layer, or of none.
KvGroupSpec kv_layout(const MixerSpec& mixer, DType dtype, KvFormat format);

}  // namespace foretoken
