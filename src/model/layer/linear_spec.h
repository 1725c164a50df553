#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/linear/gated_norm.h"
#include "kernels/linear/linear_inputs.h"
#include "kernels/linear/linear_shape.h"
#include "model/config/recurrent_config.h"
#include "model/layer/layer_state.h"

namespace foretoken {

// How a checkpoint holds the first projection of a linear attention.
enum class LinearFiles : uint8_t {
  kApart,    // tensors of their own: qkv, z, a (decays) and b (scales) (Qwen 3.5)
  kByGroup,  // qkvz and ba, in which a key head's q, k, v of its value heads and z lie together
             // (Qwen3 Next)
  kStep,     // one tensor [z | x | B | C | dt] (Mamba 2)
  // As kApart, but queries, keys and values too are tensors of their own, and so are their
  // convolutions, or these are one (OLMo, Kimi).
  kEach,
  kJoined,  // one tensor [q | k | v | z | b | a] (Lara)
  kByHead,  // qkv, in which a head's q, k and v lie together, and z (MiniMax)
};

// Linear attention behind a causal convolution of queries, keys and values, with a gated norm
// before the last product: gated delta networks and Mamba 2.
struct LinearSpec {
  LinearShape shape;
  int32_t inputs = 0;      // width of the rows that all is made of
  int32_t conv_width = 0;  // 0: there is no convolution
  bool conv_bias = false;
  bool conv_silu = true;
  LinearGates gates = LinearGates::kDelta;
  bool unit = false;  // as of LinearInputsArgs, and so are the next
  bool silu = false;
  float q_scale = 1;
  float min_step = 0;
  float max_step = 0;
  float scale_factor = 1;
  float lower_bound = 0;
  std::vector<float> fixed_rates = {};  // [value_heads] of kFixed
  // Heads of queries and keys turn by their positions (TurnHeadsArgs), where there is no
  // convolution, and pass norms of these names first; null: they pass none.
  bool turns = false;
  const char* q_norm = nullptr;
  const char* k_norm = nullptr;
  bool in_bias = false;   // of the first projection
  bool out_bias = false;  // of the last
  // Of what it leaves: the norm's groups of a row (0: no norm, gates alone), whether each has
  // weights of its own, and what gates are.
  int32_t norm_groups = 0;
  bool norm_own_weights = false;
  bool gates_first = false;
  NormGate gate = NormGate::kSilu;
  float norm_eps = 0;  // 0: that of all norms
  LinearFactors factors = {};
  // Decays, and gates, are made of so many numbers, which are made of the row (low_decay and
  // low_gate); 0: of the row itself.
  int32_t decay_rank = 0;
  int32_t gate_rank = 0;
  LinearFiles files = LinearFiles::kApart;
  // Names in the checkpoint, behind the layer's.
  const char* base = "linear_attn.";
  const char* in_qkv = "in_proj_qkv";  // kByGroup: in_proj_qkvz; kStep: in_proj
  const char* in_gate = "in_proj_z";
  const char* in_decay = "in_proj_a";  // kByGroup: in_proj_ba
  const char* in_scale = "in_proj_b";
  const char* low_gate = "g_a_proj";
  const char* low_decay = "f_a_proj";
  const char* conv = "conv1d";         // kEach: also q_conv1d, k_conv1d and v_conv1d
  const char* rates = "A_log";         // [value_heads], their logarithms; not with kFixed
  const char* decay_bias = "dt_bias";  // [shape.decay_size()]; null: there is none
  const char* skip = nullptr;          // as of LinearAttentionArgs ("D"); null: there is none
  const char* norm = "norm";
  const char* out = "out_proj";
  // Of GGUF files: rates as they are, but below zero, instead of their logarithms; and kApart's
  // tensor in the place of kByGroup's.
  static constexpr const char* kNegativeRates = "A";
  static constexpr const char* kApartQkv = "in_proj_qkv";
  // What transformers stores beside the weights of fixed decays, which follow from the config.
  static constexpr const char* kDecayBuffers[] = {"slope_rate", "query_decay", "key_decay",
                                                  "diagonal_decay"};

  bool decays() const { return gates != LinearGates::kFixed; }
  bool scales() const { return gates == LinearGates::kDelta || gates == LinearGates::kBounded; }
  // Channels that the convolution sees: [queries | keys | values].
  int32_t conv_channels() const { return 2 * shape.q_size() + shape.v_size(); }
  // Of the first product: these, and the gates of what leaves.
  int32_t first_size() const {
    return conv_channels() + (gate != NormGate::kNone && gate_rank == 0 ? shape.v_size() : 0);
  }
  // Of the product that decays and scales are made of.
  int32_t steps_size() const {
    const bool from_rows = decays() && decay_rank == 0;
    return (from_rows ? shape.decay_size() : 0) + (scales() ? shape.value_heads : 0);
  }
  StateSpec state() const { return {conv_width > 0 ? conv_channels() : 0, conv_width, shape}; }
};

// out(C * conv(B * x)) where [B | C | x] is one product of a row: the gated short convolution of
// LFM 2 (Liquid AI 2025).
struct ShortConvSpec {
  int32_t inputs = 0;    // width of the rows
  int32_t channels = 0;  // of the convolution
  int32_t width = 0;
  bool bias = false;  // of both products and the convolution
  const char* base = "conv.";
  const char* in = "in_proj";
  const char* conv = "conv";
  const char* out = "out_proj";

  StateSpec state() const { return {channels, width, {}}; }
};

// The norms, of root mean squares each, that steps, keys and queries of SelectiveSpec pass.
enum class SelectiveNorms : uint8_t {
  kNone,
  kPlain,     // without weights (Falcon Mamba)
  kWeighted,  // dt_layernorm, b_layernorm and c_layernorm (Jamba)
};

// The mixer of Mamba 1 (Gu and Dao 2023): half of a product of the row passes a causal convolution,
// SiLU and a selective scan whose steps, keys and queries are made of it, and is gated by the other
// half.
struct SelectiveSpec {
  int32_t inputs = 0;  // width of the rows
  int32_t channels = 0;
  int32_t d_state = 0;    // numbers of each channel
  int32_t step_rank = 0;  // how many numbers the channels' steps are made of
  int32_t conv_width = 0;
  bool conv_bias = false;
  bool bias = false;  // of the first product and the last
  SelectiveNorms norms = SelectiveNorms::kNone;
  float norm_eps = 0;  // 0: that of all norms
  const char* base = "mixer.";
  // Of GGUF files: rates as they are, but below zero, instead of their logarithms.
  static constexpr const char* kNegativeRates = "A";

  // Of the product that steps, keys and queries are made of.
  int32_t maps_size() const { return step_rank + 2 * d_state; }
  // As many numbers as a linear attention whose heads have one value each would keep.
  StateSpec state() const {
    const LinearShape shape{
        .key_heads = 1, .value_heads = channels, .key_dim = d_state, .value_dim = 1};
    return {channels, conv_width, shape};
  }
};

// The time mixing of RWKV 7 (Peng et al. 2025): queries, keys, values, gates and what a state loses
// are each made of the row mixed with the one before it in their own way. The layer's feed-forward
// part reads rows mixed so, too (LayerSpec::feed_forward_shift), whose history lies behind that of
// this part.
struct WkvSpec {
  LinearShape shape;
  int32_t inputs = 0;  // width of the rows
  // How many numbers decays, rates, shares and gates are made of.
  WkvRanks ranks = {};
  bool is_first = false;  // its values are those that later layers mix theirs with
  float norm_eps = 0;     // of what each head leaves
  const char* base = "attn.";
  // Of the rows that queries, decays, keys, values, rates and gates are made of.
  static constexpr const char* kMixes[] = {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"};
  static constexpr int32_t kNumMixes = 6;
  static constexpr const char* kVectors[] = {"k_k", "k_a", "g_norm.weight", "g_norm.bias"};
  static constexpr const char* kProducts[] = {"r_proj", "k_proj", "v_proj"};
  static constexpr const char* kJoinedMixes = "x_x";  // all of them, in files of the first form

  // A product of low rank: its matrices are `name`.0 and `name`.2, the second with a bias or not.
  struct Factors {
    const char* name;
    int32_t rank;
    bool bias;
  };
  // Those of decays, rates, gates and, but in the first layer, shares.
  static std::vector<Factors> factors_of(const WkvSpec& spec) {
    std::vector<Factors> all = {{"w_lora.lora", spec.ranks.decay, true},
                                {"a_lora.lora", spec.ranks.rate, true},
                                {"g_lora.lora", spec.ranks.gate, false}};
    if (!spec.is_first) all.push_back({"v_lora.lora", spec.ranks.share, true});
    return all;
  }
  int32_t widest_rank() const {
    return std::max({ranks.decay, ranks.rate, ranks.share, ranks.gate});
  }
  StateSpec state() const { return {2 * inputs, 2, shape}; }
};

struct Sharding;
// A rank's part of a whole model's mixer: its heads or channels.
ShortConvSpec part_of(const ShortConvSpec& whole, const Sharding& sharding);
LinearSpec part_of(const LinearSpec& whole, const Sharding& sharding);
SelectiveSpec part_of(const SelectiveSpec& whole, const Sharding& sharding);
WkvSpec part_of(const WkvSpec& whole, const Sharding& sharding);

}  // namespace foretoken
