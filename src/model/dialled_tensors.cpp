#include <cmath>
#include <cstring>
#include <string>

#include "base/bfloat16.h"
#include "base/philox.h"
#include "model/convert.h"
#include "model/dialled_parts.h"

namespace foretoken {
namespace {

// Deviation that all layers together add to a residual of deviation 1.
constexpr float kPerturbation = 0.05f;
constexpr float kBiasDeviation = 0.3f;

void store(DType dtype, std::byte* out, int64_t index, float value) {
  if (dtype == DType::kBF16) {
    reinterpret_cast<uint16_t*>(out)[index] = bf16_from_float(value);
  } else {
    reinterpret_cast<float*>(out)[index] = value;
  }
}

// Stores `scale` times the code of an id: +1 or -1 in each place, so that codes are exact in every
// type.
void store_code(const DialledShape& shape, int32_t id, float scale, std::byte* row) {
  constexpr uint64_t kCodeKey = 0x466F7265;
  Philox4 bits = {};
  for (int32_t c = 0; c < shape.hidden_size; ++c) {
    const auto place = static_cast<uint32_t>(c) % 128;
    if (place == 0) {
      bits = philox4x32(static_cast<uint32_t>(id), static_cast<uint32_t>(c), 0, 0, kCodeKey);
    }
    const bool positive = ((bits.v[place / 32] >> (place % 32)) & 1u) != 0;
    store(shape.dtype, row, c, positive ? scale : -scale);
  }
}

// Collects the tensors of a checkpoint in the order of its layers.
class TensorList {
 public:
  TensorList(const DialledShape& shape, const ModelConfig& config, const DecoderTraits& traits)
      : shape_(shape), config_(config), traits_(traits), body_(traits.places[0].body) {}

  std::vector<TensorToWrite> make() {
    add_embedding();
    for (int32_t i = 0; i < shape_.num_layers; ++i) {
      add_layer(body_ + "layers." + std::to_string(i) + ".");
    }
    add_constant(body_ + "norm.weight", shape_.hidden_size, norm_of(1));
    add_head();
    return std::move(tensors_);
  }

 private:
  // What is stored for a norm that multiplies by `factor`.
  float norm_of(float factor) const { return traits_.offset_norms ? factor - 1 : factor; }

  void add(const std::string& name, std::vector<int64_t> size,
           std::function<void(std::byte*)> fill) {
    const FileDType dtype = shape_.dtype == DType::kBF16 ? FileDType::kBF16 : FileDType::kF32;
    tensors_.push_back({name, dtype, std::move(size), std::move(fill)});
  }

  void add_constant(const std::string& name, int64_t size, float value) {
    add(name, {size}, [dtype = shape_.dtype, size, value](std::byte* out) {
      for (int64_t i = 0; i < size; ++i) store(dtype, out, i, value);
    });
  }

  void add_random(const std::string& name, std::vector<int64_t> size, float deviation) {
    int64_t count = 1;
    for (const int64_t extent : size) count *= extent;
    add(name, std::move(size), [dtype = shape_.dtype, name, count, deviation](std::byte* out) {
      fill_random(name, count, deviation, dtype, out);
    });
  }

  // A matrix whose outputs have the given deviation for inputs of deviation 1, and its bias.
  void add_linear(const std::string& name, int64_t rows, int64_t cols, float deviation, bool bias) {
    add_random(name + ".weight", {rows, cols}, deviation / std::sqrt(float(cols)));
    if (bias) add_random(name + ".bias", {rows}, deviation * kBiasDeviation);
  }

  void add_layer(const std::string& base) {
    const int64_t hidden = shape_.hidden_size;
    // Two blocks a layer add independent noise.
    const float added = kPerturbation / std::sqrt(2 * float(shape_.num_layers));
    // A norm behind the block undoes any scale of its matrices, so that it alone sets the noise.
    const float block = traits_.post_norms ? 1 : added;
    add_constant(base + "input_layernorm.weight", hidden, norm_of(1));
    add_attention(base + "self_attn.", block);
    add_constant(base + "post_attention_layernorm.weight", hidden,
                 norm_of(traits_.post_norms ? added : 1));
    if (traits_.post_norms) {
      add_constant(base + "pre_feedforward_layernorm.weight", hidden, norm_of(1));
      add_constant(base + "post_feedforward_layernorm.weight", hidden, norm_of(added));
    }
    add_mlp(base + "mlp.", block);
  }

  void add_attention(const std::string& base, float deviation) {
    const int64_t q = int64_t{shape_.num_heads} * shape_.head_dim;
    const int64_t kv = int64_t{shape_.num_kv_heads} * shape_.head_dim;
    const int64_t hidden = shape_.hidden_size;
    const bool bias = config_.attention_bias || traits_.qkv_bias;
    if (traits_.fused_projections) {
      add_linear(base + "qkv_proj", q + 2 * kv, hidden, 1, bias);
    } else {
      add_linear(base + "q_proj", q, hidden, 1, bias);
      add_linear(base + "k_proj", kv, hidden, 1, bias);
      add_linear(base + "v_proj", kv, hidden, 1, bias);
    }
    if (traits_.qk_norm) {
      add_constant(base + "q_norm.weight", shape_.head_dim, norm_of(1));
      add_constant(base + "k_norm.weight", shape_.head_dim, norm_of(1));
    }
    add_linear(base + "o_proj", hidden, q, deviation, bias && !traits_.qkv_bias);
  }

  void add_mlp(const std::string& base, float deviation) {
    const int64_t hidden = shape_.hidden_size, inner = shape_.intermediate_size;
    if (traits_.fused_projections) {
      add_linear(base + "gate_up_proj", 2 * inner, hidden, 1, config_.mlp_bias);
    } else {
      add_linear(base + "gate_proj", inner, hidden, 1, config_.mlp_bias);
      add_linear(base + "up_proj", inner, hidden, 1, config_.mlp_bias);
    }
    add_linear(base + "down_proj", hidden, inner, deviation, config_.mlp_bias);
  }

  // A row for each id that nothing else resembles; its elements are 1 or -1 in the residual.
  void add_embedding() {
    const float scale = traits_.scaled_embedding ? 1 / std::sqrt(float(shape_.hidden_size)) : 1.0f;
    add(body_ + "embed_tokens.weight", {shape_.vocab_size, shape_.hidden_size},
        [shape = shape_, scale](std::byte* out) {
          const size_t row_bytes = size_t(shape.hidden_size) * dtype_size(shape.dtype);
          for (int32_t id = 0; id < shape.vocab_size; ++id) {
            store_code(shape, id, scale, out + size_t(id) * row_bytes);
          }
        });
  }

  // Row s is the code of the id that s follows, so that its logit wins there: 16 to 32 against sums
  // of random signs.
  void add_head() {
    add(traits_.places[0].head, {shape_.vocab_size, shape_.hidden_size},
        [shape = shape_](std::byte* out) {
          const size_t row_bytes = size_t(shape.hidden_size) * dtype_size(shape.dtype);
          const float scale = std::exp2(4.0f - std::floor(std::log2(float(shape.hidden_size))));
          std::memset(out, 0, row_bytes * size_t(shape.vocab_size));
          const std::vector<int32_t> successors = dialled_successors(shape);
          for (int32_t id = 0; id < shape.vocab_size; ++id) {
            const int32_t row = successors[static_cast<size_t>(id)];
            if (row >= 0) store_code(shape, id, scale, out + size_t(row) * row_bytes);
          }
        });
  }

  const DialledShape shape_;
  const ModelConfig& config_;
  const DecoderTraits& traits_;
  const std::string body_;
  std::vector<TensorToWrite> tensors_;
};

}  // namespace

std::vector<TensorToWrite> dialled_tensors(const DialledShape& shape, const ModelConfig& config,
                                           const DecoderTraits& traits) {
  return TensorList(shape, config, traits).make();
}

}  // namespace foretoken
