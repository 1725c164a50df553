#include "model/layer/layer_tensors.h"

#include <string_view>

#include "kernels/rows/fold_streams.h"

namespace foretoken {
namespace {

// Whether a tensor serves as two.
bool is_same(std::string_view name, std::string_view other) { return name == other; }

class LayerTensorList {
 public:
  LayerTensorList(int32_t hidden_size, const NormForm& norms)
      : hidden_(hidden_size), norms_(norms) {}

  void add_layer_norm(const char* name) {
    if (name != nullptr) add_norm(name, hidden_);
  }

  void add_norm(const std::string& name, int64_t size) {
    if (!norms_.weighted) return;
    all_.push_back({name + ".weight", size});
    if (norms_.bias) all_.push_back({name + ".bias", size});
  }

  void add(const GqaSpec& mixer) {
    const std::string base = mixer.base;
    const int32_t turned = mixer.head_dim;
    const int64_t value_dim = mixer.value_dim > 0 ? mixer.value_dim : mixer.head_dim;
    if (mixer.fused) {
      add_linear(base + mixer.qkv, mixer.qkv_size(), mixer.inputs, mixer.qkv_bias);
    } else if (mixer.pairs_kv) {
      add_linear(base + "query", mixer.q_size(), mixer.inputs, mixer.qkv_bias, turned);
      add_linear(base + "key_value", 2 * mixer.kv_size(), mixer.inputs, mixer.qkv_bias);
    } else {
      const int64_t kv_heads = mixer.own_kv_heads();
      const int64_t key_dim = mixer.dynamic_mask ? value_dim : mixer.head_dim;
      const int64_t queries = mixer.differs() ? mixer.o_size() : mixer.num_heads * key_dim;
      add_linear(base + "q_proj", mixer.gates_in_q ? 2 * queries : queries, mixer.inputs,
                 mixer.qkv_bias, turned);
      const int64_t keys = kv_heads * key_dim;
      const int64_t values = mixer.keys_are_values ? 0 : kv_heads * value_dim;
      if (keys > 0) add_linear(base + "k_proj", keys, mixer.inputs, mixer.qkv_bias, turned);
      if (values > 0) add_linear(base + "v_proj", values, mixer.inputs, mixer.qkv_bias);
    }
    const int64_t left = mixer.differs() ? mixer.o_size() : int64_t{mixer.num_heads} * value_dim;
    add_linear(base + mixer.o, hidden_, left, mixer.o_bias);
    if (mixer.num_gates() > 0 && !mixer.gates_in_q) {
      add_linear(base + mixer.gate_proj, mixer.num_gates(), mixer.inputs, false);
    }
    if (mixer.differs()) add_lambdas(base, mixer.head_dim / 2);
    if (mixer.dynamic_mask) add_mask(base, mixer);
    if (mixer.index.exists()) add_block_index(base + "index_", mixer);
    if (mixer.sinks != nullptr) all_.push_back({base + mixer.sinks, mixer.num_heads});
    if (mixer.sub_norm != nullptr) add_norm(base + mixer.sub_norm, mixer.q_size());
    add_head_norm(base + mixer.q_norm, mixer, mixer.num_heads);
    if (mixer.kv_of < 0) add_head_norm(base + mixer.k_norm, mixer, mixer.num_kv_heads);
  }

  void add(const LatentSpec& mixer) {
    const std::string base = mixer.base;
    const int64_t q_size = mixer.stored_queries(), kv_rank = mixer.kv_rank;
    if (mixer.q_rank > 0) {
      add_linear(base + "q_a_proj", mixer.q_rank, mixer.inputs, mixer.bias);
      all_.push_back({base + "q_a_layernorm.weight", mixer.q_rank});
      if (mixer.gates_with_queries) {
        add_linear(base + mixer.gate_proj, q_size + mixer.num_gates(), mixer.query_inputs(), false);
      } else {
        add_linear(base + "q_b_proj", q_size, mixer.q_rank, false);
      }
    } else {
      add_linear(base + "q_proj", q_size, mixer.inputs, mixer.bias);
    }
    add_linear(base + "kv_a_proj_with_mqa", mixer.stored_entry(), mixer.inputs, mixer.bias);
    all_.push_back({base + "kv_a_layernorm.weight", kv_rank});
    add_linear(base + "kv_b_proj", mixer.num_heads * int64_t{mixer.nope_dim + mixer.value_dim},
               kv_rank, false);
    add_linear(base + mixer.o, hidden_, int64_t{mixer.num_heads} * mixer.value_dim, mixer.o_bias);
    if (mixer.gate_proj != nullptr && !mixer.gates_with_queries) {
      add_linear(base + mixer.gate_proj, mixer.num_gates(), mixer.inputs, false);
    }
    if (mixer.sinks != nullptr) all_.push_back({base + mixer.sinks, mixer.num_heads});
    if (mixer.index.exists() && mixer.index.own) add_indexer(base + mixer.indexer, mixer);
  }

  void add(const CompressedSpec& mixer) {
    const std::string base = mixer.base;
    const int64_t grouped = int64_t{mixer.groups} * mixer.o_rank;
    add_linear(base + "wq_a", mixer.q_rank, mixer.inputs, false);
    add_linear(base + "wkv", mixer.head_dim, mixer.inputs, false);
    add_linear(base + "wq_b", mixer.q_size(), mixer.q_rank, false);
    add_linear(base + "wo_a", grouped, mixer.q_size() / mixer.groups, false);
    add_linear(base + "wo_b", hidden_, grouped, false);
    all_.push_back({base + "q_norm.weight", mixer.q_rank});
    all_.push_back({base + "kv_norm.weight", mixer.head_dim});
    all_.push_back({base + "attn_sink", mixer.num_heads});
    if (mixer.ratio == 0) return;
    add_compressor(base + "compressor.", mixer, mixer.head_dim, mixer.width());
    if (!mixer.index.exists()) return;
    const IndexSpec& index = mixer.index;
    const std::string indexer = base + "indexer.";
    add_compressor(indexer + "compressor.", mixer, index.head_dim, mixer.index_width());
    add_linear(indexer + "weights_proj", index.num_heads, mixer.inputs, false);
    all_.back().is_exact = true;
    add_linear(indexer + "wq_b", int64_t{index.num_heads} * index.head_dim, mixer.q_rank, false);
  }

  void add(const ShortConvSpec& mixer) {
    const std::string base = mixer.base;
    add_linear(base + mixer.in, 3 * int64_t{mixer.channels}, mixer.inputs, mixer.bias);
    add_conv(base + mixer.conv, mixer.channels, mixer.width, mixer.bias);
    add_linear(base + mixer.out, hidden_, mixer.channels, mixer.bias);
  }

  void add(const LinearSpec& mixer) {
    const std::string base = mixer.base;
    const LinearShape& shape = mixer.shape;
    const int64_t heads = shape.value_heads;
    add_inputs(base, mixer);
    if (mixer.conv_width > 0) add_convs(base, mixer);
    if (mixer.decays()) all_.push_back({base + mixer.rates, heads});
    if (mixer.decay_bias != nullptr) {
      all_.push_back({base + mixer.decay_bias, shape.decay_size()});
    }
    if (mixer.skip != nullptr) all_.push_back({base + mixer.skip, heads});
    for (const char* name : {mixer.q_norm, mixer.k_norm}) {
      if (name != nullptr) all_.push_back({base + name + ".weight", shape.key_dim});
    }
    if (mixer.norm_groups > 0) {
      const int64_t size = shape.v_size();
      all_.push_back({base + mixer.norm + ".weight",
                      mixer.norm_own_weights ? size : size / mixer.norm_groups});
    }
    add_linear(base + mixer.out, hidden_, shape.v_size(), mixer.out_bias);
  }

  void add_inputs(const std::string& base, const LinearSpec& mixer) {
    const LinearShape& shape = mixer.shape;
    const int64_t channels = mixer.conv_channels(), heads = shape.value_heads;
    switch (mixer.files) {
      case LinearFiles::kApart:
      case LinearFiles::kByHead:
        add_linear(base + mixer.in_qkv, channels, mixer.inputs, mixer.in_bias);
        if (mixer.gate != NormGate::kNone) {
          add_linear(base + mixer.in_gate, shape.v_size(), mixer.inputs, mixer.in_bias);
        }
        if (!mixer.decays()) break;
        add_exact(base + mixer.in_decay, heads, mixer);
        add_exact(base + mixer.in_scale, heads, mixer);
        break;
      case LinearFiles::kEach:
        add_linear(base + "q_proj", shape.q_size(), mixer.inputs, mixer.in_bias);
        add_linear(base + "k_proj", shape.q_size(), mixer.inputs, mixer.in_bias);
        add_linear(base + "v_proj", shape.v_size(), mixer.inputs, mixer.in_bias);
        add_low(base, mixer);
        add_exact(base + mixer.in_scale, heads, mixer);
        break;
      case LinearFiles::kByGroup:
        add_linear(base + mixer.in_qkv, mixer.first_size(), mixer.inputs, mixer.in_bias);
        add_exact(base + mixer.in_decay, 2 * heads, mixer);
        break;
      case LinearFiles::kStep:
        add_linear(base + mixer.in_qkv, mixer.first_size() + heads, mixer.inputs, mixer.in_bias);
        break;
      case LinearFiles::kJoined:
        add_linear(base + mixer.in_qkv, mixer.first_size() + 2 * heads, mixer.inputs, false);
        break;
    }
  }

  void add_convs(const std::string& base, const LinearSpec& mixer) {
    if (mixer.files != LinearFiles::kEach) {
      return add_conv(base + mixer.conv, mixer.conv_channels(), mixer.conv_width, mixer.conv_bias);
    }
    for (const char* name : {"q_conv1d", "k_conv1d"}) {
      add_conv(base + name, mixer.shape.q_size(), mixer.conv_width, false);
    }
    add_conv(base + "v_conv1d", mixer.shape.v_size(), mixer.conv_width, false);
  }

  void add(const SelectiveSpec& mixer) {
    const std::string base = mixer.base;
    const int64_t channels = mixer.channels;
    add_linear(base + "in_proj", 2 * channels, mixer.inputs, mixer.bias);
    add_conv(base + "conv1d", channels, mixer.conv_width, mixer.conv_bias);
    add_linear(base + "x_proj", mixer.maps_size(), channels, false);
    all_.back().is_exact = true;
    const size_t steps = all_.size();
    add_linear(base + "dt_proj", channels, mixer.step_rank, true);
    all_[steps].is_exact = true;
    all_.push_back({base + "A_log", channels, mixer.d_state});
    all_.push_back({base + "D", channels});
    if (mixer.norms == SelectiveNorms::kWeighted) {
      all_.push_back({base + "dt_layernorm.weight", mixer.step_rank});
      all_.push_back({base + "b_layernorm.weight", mixer.d_state});
      all_.push_back({base + "c_layernorm.weight", mixer.d_state});
    }
    add_linear(base + "out_proj", hidden_, channels, mixer.bias);
  }

  void add(const WkvSpec& mixer) {
    const std::string base = mixer.base;
    const int64_t size = mixer.shape.v_size();
    for (const char* name : WkvSpec::kMixes) all_.push_back({base + name, 1, mixer.inputs, 0, 1});
    for (const char* name : WkvSpec::kVectors) all_.push_back({base + name, size});
    all_.push_back({base + "r_k", mixer.shape.value_heads, mixer.shape.key_dim});
    for (const char* name : WkvSpec::kProducts) add_linear(base + name, size, mixer.inputs, false);
    for (const auto& [name, rank, bias] : WkvSpec::factors_of(mixer)) {
      all_.push_back({base + name + ".0.weight", rank, mixer.inputs, 0, 0, true});
      all_.push_back({base + name + ".2.weight", size, rank, 0, 0, true});
      if (bias) all_.push_back({base + name + ".2.bias", size});
    }
    add_linear(base + "o_proj", hidden_, size, false);
  }

  void add(const GatedMlpSpec& mlp, const std::string& before = {}) {
    const std::string base = before + mlp.base;
    if (mlp.fused) {
      add_linear(base + mlp.gate_up, 2 * int64_t{mlp.inner}, hidden_, mlp.bias);
    } else {
      if (!is_same(mlp.gate, mlp.up)) add_linear(base + mlp.gate, mlp.inner, hidden_, mlp.bias);
      add_linear(base + mlp.up, mlp.inner, hidden_, mlp.bias);
    }
    add_linear(base + mlp.down, hidden_, mlp.inner, mlp.bias || mlp.down_bias);
    if (mlp.sub_norm != nullptr) add_norm(base + mlp.sub_norm, mlp.inner);
  }

  void add(const ExpertsSpec& experts) {
    const std::string base = experts.base;
    const size_t router = all_.size();
    add_linear(base + experts.router, experts.choices(), hidden_, experts.biased);
    all_[router].is_exact = true;
    if (experts.router_scale != nullptr) all_.push_back({base + experts.router_scale, hidden_});
    if (experts.weight_scales != nullptr) {
      all_.push_back({base + experts.weight_scales, experts.count});
    }
    if (experts.correction != nullptr) {
      LayerTensor correction{base + experts.correction, experts.choices()};
      if (experts.correction_is_row) correction = {correction.name, 1, experts.choices()};
      all_.push_back(correction);
    }
    if (experts.table != nullptr) {
      all_.push_back({base + experts.table, experts.vocabulary, experts.top_k});
    }
    if (experts.latent > 0) {
      add_linear(base + experts.to_latent, experts.latent, hidden_, false);
      add_linear(base + experts.of_latent, hidden_, experts.latent, false);
      if (experts.latent_norm != nullptr) add_norm(base + experts.latent_norm, experts.latent);
    }
    add_matrices(base + experts.experts, experts);
    if (experts.shared_inner == 0) return;
    add(shared_mlp_of(experts), base + experts.shared);
    if (experts.shared_gate == nullptr) return;
    add_linear(base + experts.shared_gate, 1, hidden_, false);
    all_.back().is_exact = true;
  }

  void add(const PlainMlpSpec& mlp) {
    const std::string base = mlp.base;
    add_linear(base + mlp.up, mlp.inner, hidden_, mlp.bias);
    add_linear(base + mlp.down, hidden_, mlp.inner, mlp.bias);
    if (mlp.activation != Activation::kXielu) return;
    for (const char* name : {"alpha_p", "alpha_n", "beta", "eps"}) {
      all_.push_back({base + "act_fn." + name, 1});
    }
  }

  void add(const Absent&) {}

  void add_behind(const LayerSpec& layer) {
    if (layer.input_size > 0) {
      add_linear("per_layer_input_gate", layer.input_size, hidden_, false);
      add_linear("per_layer_projection", hidden_, layer.input_size, false);
      add_layer_norm("post_per_layer_input_norm");
    }
    for (const char* name :
         {layer.mixer_residual, layer.feed_forward_residual, layer.feed_forward_shift}) {
      if (name != nullptr) all_.push_back({name, hidden_});
    }
    if (layer.scaled) all_.push_back({"layer_scalar", 1});
    if (layer.beside) {
      add(layer.beside->experts);
      add_layer_norm(layer.beside->norm);
      add_layer_norm(layer.beside->post_norm);
      add_layer_norm(layer.beside->other_post_norm);
    }
    if (layer.shortcut) add(*layer.shortcut);
    if (layer.laurel_rank > 0) {
      add_linear("laurel.linear_left", layer.laurel_rank, hidden_, false);
      add_linear("laurel.linear_right", hidden_, layer.laurel_rank, false);
      add_layer_norm("laurel.post_laurel_norm");
    }
    if (layer.streams.exist()) add_streams(layer.streams);
    for (const RowGateSpec& gate : {layer.mixer_gate, layer.feed_forward_gate}) {
      if (gate.rank == 0) continue;
      add_linear(std::string(gate.base) + gate.down, gate.rank, hidden_, false);
      add_linear(std::string(gate.base) + gate.up, hidden_, gate.rank, false);
    }
    if (layer.shared.exists()) add_shared(layer.shared);
    if (layer.depth.exists) {
      add_query(layer.depth.mixer_norm, layer.depth.mixer_query);
      add_query(layer.depth.feed_forward_norm, layer.depth.feed_forward_query);
    }
    if (!layer.hyper.exist()) return;
    add_hyper(layer.hyper.of_mixer, layer.hyper);
    add_hyper(layer.hyper.of_feed_forward, layer.hyper);
  }

  std::vector<LayerTensor> take() { return std::move(all_); }

 private:
  void add_shared(const SharedSpec& shared) {
    const std::string base = SharedSpec::kBlock;
    const std::string use = "_adapter_list." + std::to_string(shared.use);
    const int64_t inner = 2 * int64_t{shared.inner};
    add_norm(base + "input_layernorm", 2 * int64_t{hidden_});
    add_norm(base + "pre_ff_layernorm", hidden_);
    for (const char* name : {"self_attn.linear_q", "self_attn.linear_k", "self_attn.linear_v"}) {
      if (!shared.adapts_attention) break;
      add_linear(base + name + use + ".0", shared.rank, 2 * int64_t{hidden_}, false);
      add_linear(base + name + use + ".1", int64_t{shared.num_heads} * shared.head_dim, shared.rank,
                 false);
    }
    const std::string mlp = base + "feed_forward.", adapter = mlp + "gate_up_proj" + use;
    add_linear(mlp + "gate_up_proj", inner, hidden_, false);
    add_linear(mlp + "down_proj", hidden_, shared.inner, false);
    add_linear(adapter + ".0", shared.rank, hidden_, false);
    add_linear(adapter + ".1", inner, shared.rank, false);
    add_linear("linear", hidden_, hidden_, false);
    add_norm("mamba_decoder.input_layernorm", hidden_);
  }

  void add_compressor(const std::string& base, const CompressedSpec& mixer, int64_t head_dim,
                      int64_t width) {
    for (const char* name : {"wkv", "wgate"}) {
      add_linear(base + name, width, mixer.inputs, false);
      all_.back().is_exact = true;
    }
    all_.push_back({base + "ape", mixer.ratio, width});
    all_.push_back({base + "norm.weight", head_dim});
  }

  void add_hyper(const std::string& name, const HyperConfig& hyper) {
    const int64_t made = num_hyper_weights(hyper.count, learned_of(hyper));
    all_.push_back({name + "fn", made, int64_t{hyper.count} * hidden_});
    all_.push_back({name + "base", made});
    all_.push_back({name + "scale", num_hyper_scales(learned_of(hyper))});
  }

  void add_indexer(const std::string& base, const LatentSpec& mixer) {
    const IndexSpec& index = mixer.index;
    add_linear(base + "wk", index.head_dim, mixer.inputs, false);
    add_linear(base + "weights_proj", index.num_heads, mixer.inputs, false);
    all_.back().is_exact = true;
    add_linear(base + "wq_b", int64_t{index.num_heads} * index.head_dim, mixer.q_rank, false);
    all_.push_back({base + "k_norm.weight", index.head_dim});
    all_.push_back({base + "k_norm.bias", index.head_dim});
    if (index.pool == 1) return;
    all_.push_back({base + "index_kpool_compress_gate", index.head_dim, mixer.inputs});
    all_.push_back({base + "index_kpool_compress_ape", index.pool, index.head_dim});
  }

  void add_block_index(const std::string& base, const GqaSpec& mixer) {
    const int64_t dim = mixer.index.head_dim;
    add_linear(base + "q_proj", mixer.num_kv_heads * dim, mixer.inputs, false);
    add_linear(base + "k_proj", dim, mixer.inputs, false);
    for (const char* name : {"q_norm.weight", "k_norm.weight"}) all_.push_back({base + name, dim});
  }

  void add_query(const std::string& norm, const std::string& query) {
    all_.push_back({norm + ".weight", hidden_});
    all_.push_back({query + ".weight", 1, hidden_});
  }

  void add_mask(const std::string& base, const GqaSpec& mixer) {
    const int64_t heads = mixer.num_kv_heads;
    all_.push_back({base + "A", heads});
    add_linear(base + "dt_proj", heads, heads * mixer.value_dim, false);
    for (const char* name : {"q_norm.weight", "k_norm.weight"}) {
      all_.push_back({base + name, mixer.value_dim});
    }
  }

  void add_lambdas(const std::string& base, int64_t size) {
    for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"}) {
      all_.push_back({base + name, size});
    }
  }

  void add_streams(const StreamConfig& streams) {
    const int64_t count = streams.count;
    add_layer_norm("altup.router_norm");
    add_linear("altup.modality_router", count, hidden_, false);
    add_linear("altup.prediction_coefs", count * count, count, false);
    add_linear("altup.correction_coefs", count, count, false);
    if (streams.scaled) all_.push_back({"altup.correct_output_scale", hidden_});
  }

  // The matrices of all experts.
  void add_matrices(const std::string& base, const ExpertsSpec& experts) {
    const int64_t count = experts.count, inner = experts.inner, width = experts.width();
    if (experts.files == ExpertFiles::kRows) {
      for (const char* name : {experts.gate, experts.up, experts.down}) {
        all_.push_back({base + name, count * inner, width});
      }
    } else if (experts.files == ExpertFiles::kFused) {
      all_.push_back({base + experts.gate_up, count * 2 * inner, width, 0, count});
      all_.push_back({base + experts.down, count * width, inner, 0, count});
    } else if (experts.files == ExpertFiles::kFusedTurned) {
      all_.push_back({base + experts.gate_up, count * width, 2 * inner, 0, count});
      all_.push_back({base + experts.down, count * inner, width, 0, count});
    }
    if (experts.biased) {
      all_.push_back({base + experts.gate_up + "_bias", count, 2 * inner});
      all_.push_back({base + experts.down + "_bias", count, width});
    }
    for (int64_t e = 0; experts.files == ExpertFiles::kEach && e < count; ++e) {
      const std::string one = base + std::to_string(e) + ".";
      if (!is_same(experts.gate, experts.up)) add_linear(one + experts.gate, inner, width, false);
      add_linear(one + experts.up, inner, width, false);
      add_linear(one + experts.down, width, inner, false);
    }
  }

  void add_linear(const std::string& name, int64_t rows, int64_t cols, bool bias,
                  int32_t turned_rows = 0) {
    all_.push_back({name + ".weight", rows, cols, turned_rows});
    if (bias) all_.push_back({name + ".bias", rows, 0, turned_rows});
  }

  // Of each channel by itself.
  void add_conv(const std::string& name, int64_t channels, int64_t width, bool bias) {
    all_.push_back({name + ".weight", channels, width, 0, channels, true});
    if (bias) all_.push_back({name + ".bias", channels});
  }

  // Decays and gates of kEach.
  void add_low(const std::string& base, const LinearSpec& mixer) {
    const LinearShape& shape = mixer.shape;
    const auto add_by_way = [&](const char* low, const char* name, int64_t rows, int32_t rank) {
      if (rank > 0) add_exact(base + low, rank, mixer);
      add_linear(base + name, rows, rank > 0 ? rank : mixer.inputs, mixer.in_bias);
      all_.back().is_exact = rank > 0 || is_same(name, mixer.in_decay);
    };
    add_by_way(mixer.low_decay, mixer.in_decay, shape.decay_size(), mixer.decay_rank);
    add_by_way(mixer.low_gate, mixer.in_gate, shape.v_size(), mixer.gate_rank);
  }

  void add_exact(const std::string& name, int64_t rows, const LinearSpec& mixer) {
    add_linear(name, rows, mixer.inputs, mixer.in_bias);
    all_[all_.size() - (mixer.in_bias ? 2 : 1)].is_exact = true;
  }

  void add_head_norm(const std::string& name, const GqaSpec& mixer, int32_t heads) {
    const int64_t dim = mixer.head_dim;
    switch (mixer.qk_norm) {
      case QkNorm::kNone:
      case QkNorm::kUnit:
      case QkNorm::kUnitScaled:
        return;
      case QkNorm::kHead:
      case QkNorm::kTurned:
      case QkNorm::kWidth:
        all_.push_back({name + ".weight", mixer.qk_norm == QkNorm::kWidth ? heads * dim : dim});
        return;
      case QkNorm::kOwn:
        all_.push_back({name + ".weight", heads, dim});
        return;
      case QkNorm::kOwnListed:
        for (int32_t i = 0; i < heads; ++i) {
          all_.push_back({name + ".norms." + std::to_string(i) + ".weight", dim});
        }
        return;
    }
  }

  const int32_t hidden_;
  const NormForm norms_;
  std::vector<LayerTensor> all_;
};

}  // namespace

std::vector<LayerTensor> layer_tensors(const LayerSpec& layer, const NormForm& norms,
                                       int32_t hidden_size) {
  LayerTensorList list(hidden_size, norms);
  list.add_layer_norm(layer.mixer_norm);
  std::visit([&](const auto& mixer) { list.add(mixer); }, layer.mixer);
  if (layer.side) list.add(*layer.side);
  list.add_layer_norm(layer.mixer_post_norm);
  list.add_layer_norm(layer.feed_forward_norm);
  std::visit([&](const auto& part) { list.add(part); }, layer.feed_forward);
  list.add_layer_norm(layer.feed_forward_post_norm);
  list.add_behind(layer);
  return list.take();
}

}  // namespace foretoken
