#include "dialled/dialled_fill.h"

#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/bfloat16.h"
#include "base/philox.h"
#include "model/files/forms/convert.h"
#include "model/layer/layer_tensors.h"

namespace foretoken {
namespace {

constexpr float kBiasDeviation = 0.3f;
constexpr float kCorrectionDeviation = 0.1f;
constexpr float kSinkDeviation = 1.0f;
constexpr int32_t kFirstWord = 2;

void store(DType dtype, std::byte* out, int64_t index, float value) {
  if (dtype == DType::kBF16) {
    reinterpret_cast<uint16_t*>(out)[index] = bf16_from_float(value);
  } else {
    reinterpret_cast<float*>(out)[index] = value;
  }
}

float load(DType dtype, const std::byte* in, int64_t index) {
  return dtype == DType::kBF16 ? bf16_to_float(reinterpret_cast<const uint16_t*>(in)[index])
                               : reinterpret_cast<const float*>(in)[index];
}

// The layer as its architecture composes it, of the shape's sizes.
LayerSpec spec_of(const DialledLayer& layer) {
  ModelConfig config = layer.config;
  config.hidden_size = layer.shape.hidden_size;
  config.intermediate_size = layer.shape.intermediate_size;
  config.num_heads = layer.shape.num_heads;
  config.num_kv_heads = layer.shape.num_kv_heads;
  config.head_dim = layer.shape.head_dim;
  LayerConfig pattern;
  pattern.experts = layer.experts;
  LayerSpec spec = layer.traits.layer(config, pattern);
  if (!layer.input_norm) spec.mixer_norm = nullptr;
  return spec;
}

bool is_norm(const LayerTensor& tensor, const char* name) {
  return name != nullptr && tensor.name == std::string(name) + ".weight";
}

// The matrix that adds to the residual, or one of those of experts.
bool is_last_of_feed_forward(const LayerSpec& spec, const std::string& name) {
  const auto* experts = std::get_if<ExpertsSpec>(&spec.feed_forward);
  if (experts == nullptr) return name == "mlp.down_proj.weight";
  const std::string down = "." + std::string(experts->down);
  return name.starts_with(experts->base) &&
         (name.ends_with(down + ".weight") || name.ends_with(down) ||
          name.ends_with(down + "_bias") || name.ends_with(".down_proj.weight"));
}

// One tensor for all experts: their matrices, or the biases of those.
bool is_of_all_experts(const LayerSpec& spec, const LayerTensor& tensor) {
  const auto* experts = std::get_if<ExpertsSpec>(&spec.feed_forward);
  if (experts == nullptr) return false;
  return tensor.stacked > 0 || (experts->biased && tensor.name.ends_with("_bias"));
}

void add_of_all_experts(const ExpertsSpec& experts, const LayerTensor& tensor,
                        const std::string& base, float deviation, DialledTensors* out) {
  const std::string name = base + tensor.name;
  if (tensor.stacked == 0) {
    return out->add_rows(name, tensor.rows, tensor.cols, deviation * kBiasDeviation);
  }
  out->add_stack(name, {tensor.stacked, tensor.rows / tensor.stacked, tensor.cols},
                 experts.files == ExpertFiles::kFusedTurned, deviation);
}

bool is_sinks(const LayerSpec& spec, const std::string& name) {
  const auto* mixer = std::get_if<GqaSpec>(&spec.mixer);
  return mixer != nullptr && mixer->sinks != nullptr &&
         name == mixer->base + std::string(mixer->sinks);
}

// What is added to the scores by which experts are chosen.
bool is_correction(const LayerSpec& spec, const std::string& name) {
  const auto* experts = std::get_if<ExpertsSpec>(&spec.feed_forward);
  return experts != nullptr && experts->correction != nullptr &&
         name == experts->base + std::string(experts->correction);
}

// A norm behind a part undoes any scale of its matrices, so that it alone sets the noise.
float deviation_of(const DialledLayer& layer, const LayerSpec& spec, const LayerTensor& tensor) {
  if (tensor.name == "self_attn.o_proj.weight") {
    return spec.mixer_post_norm != nullptr ? 1 : layer.deviation;
  }
  if (is_last_of_feed_forward(spec, tensor.name)) {
    return spec.feed_forward_post_norm != nullptr ? 1 : layer.deviation;
  }
  const bool after =
      is_norm(tensor, spec.mixer_post_norm) || is_norm(tensor, spec.feed_forward_post_norm);
  return after ? layer.deviation : 1;
}

void add_tensors(const DialledLayer& layer, const std::string& base, bool with_mixer,
                 DialledTensors* out) {
  constexpr std::string_view kWeight = ".weight", kBias = ".bias";
  const LayerSpec spec = spec_of(layer);
  const auto tensors = layer_tensors(spec, layer.traits.norms, layer.shape.hidden_size);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const LayerTensor& tensor = tensors[i];
    const bool of_mixer = tensor.name.starts_with("self_attn.") || is_norm(tensor, spec.mixer_norm);
    if (tensor.name.ends_with(kBias) || (of_mixer && !with_mixer)) continue;
    const float deviation = deviation_of(layer, spec, tensor);
    if (is_correction(spec, tensor.name)) {
      out->add_vector(base + tensor.name, tensor.rows, kCorrectionDeviation);
      continue;
    }
    if (is_of_all_experts(spec, tensor)) {
      add_of_all_experts(std::get<ExpertsSpec>(spec.feed_forward), tensor, base, deviation, out);
      continue;
    }
    if (is_sinks(spec, tensor.name)) {
      out->add_vector(base + tensor.name, tensor.rows, kSinkDeviation);
      continue;
    }
    if (tensor.cols == 0) {
      out->add_constant(base + tensor.name, tensor.rows, deviation - layer.traits.norms.offset);
      continue;
    }
    const std::string name = tensor.name.substr(0, tensor.name.size() - kWeight.size());
    const bool bias = i + 1 < tensors.size() && tensors[i + 1].name == name + std::string(kBias);
    out->add_linear(base + name, tensor.rows, tensor.cols, deviation, bias);
  }
}

}  // namespace

int32_t dialled_word(const DialledShape& shape, int32_t id) {
  const int32_t words = shape.vocab_size - kFirstWord;
  return id < kFirstWord ? -1 : kFirstWord + (id - kFirstWord + shape.id_shift) % words;
}

int32_t dialled_id(const DialledShape& shape, int32_t word) {
  const int32_t words = shape.vocab_size - kFirstWord;
  return kFirstWord + (word - kFirstWord + words - shape.id_shift % words) % words;
}

void DialledTensors::add(const std::string& name, FileDType dtype, std::vector<int64_t> size,
                         std::function<void(std::byte*)> fill) {
  tensors_.push_back({name, dtype, std::move(size), std::move(fill)});
}

void DialledTensors::add_weights(const std::string& name, std::vector<int64_t> size,
                                 std::function<void(std::byte*)> fill) {
  add(name, dtype_ == DType::kBF16 ? FileDType::kBF16 : FileDType::kF32, std::move(size),
      std::move(fill));
}

void DialledTensors::add_constant(const std::string& name, int64_t size, float value) {
  add_weights(name, {size}, [dtype = dtype_, size, value](std::byte* out) {
    for (int64_t i = 0; i < size; ++i) store(dtype, out, i, value);
  });
}

void DialledTensors::add_vector(const std::string& name, int64_t size, float deviation) {
  add_weights(name, {size}, [dtype = dtype_, name, size, deviation](std::byte* out) {
    fill_random(name, size, deviation, dtype, out);
  });
}

void DialledTensors::add_linear(const std::string& name, int64_t rows, int64_t cols,
                                float deviation, bool bias) {
  const auto random = [this](const std::string& full, std::vector<int64_t> size, int64_t count,
                             float spread) {
    add_weights(full, std::move(size), [dtype = dtype_, full, count, spread](std::byte* out) {
      fill_random(full, count, spread, dtype, out);
    });
  };
  random(name + ".weight", {rows, cols}, rows * cols, deviation / std::sqrt(float(cols)));
  if (bias) random(name + ".bias", {rows}, rows, deviation * kBiasDeviation);
}

void DialledTensors::add_stack(const std::string& name, const std::vector<int64_t>& size,
                               bool turned, float deviation) {
  const int64_t count = size[0] * size[1] * size[2];
  const float spread = deviation / std::sqrt(static_cast<float>(turned ? size[1] : size[2]));
  add_weights(name, size, [dtype = dtype_, name, count, spread](std::byte* out) {
    fill_random(name, count, spread, dtype, out);
  });
}

void DialledTensors::add_rows(const std::string& name, int64_t rows, int64_t cols,
                              float deviation) {
  add_weights(name, {rows, cols}, [dtype = dtype_, name, rows, cols, deviation](std::byte* out) {
    fill_random(name, rows * cols, deviation, dtype, out);
  });
}

void DialledTensors::add_blocks(const std::string& name, int64_t size, std::vector<float> gains,
                                float deviation) {
  const int64_t cols = size * static_cast<int64_t>(gains.size());
  add_weights(name, {size, cols},
              [dtype = dtype_, name, size, cols, gains, deviation](std::byte* out) {
                fill_random(name, size * cols, deviation / std::sqrt(float(cols)), dtype, out);
                for (int64_t row = 0; row < size; ++row) {
                  for (size_t block = 0; block < gains.size(); ++block) {
                    const int64_t at = row * cols + static_cast<int64_t>(block) * size + row;
                    store(dtype, out, at, load(dtype, out, at) + gains[block]);
                  }
                }
              });
}

void DialledTensors::add_gates(const std::string& name, int64_t size, std::vector<float> gains) {
  const int64_t rows = size * static_cast<int64_t>(gains.size());
  add_weights(name, {rows, size}, [dtype = dtype_, size, rows, gains](std::byte* out) {
    std::memset(out, 0, static_cast<size_t>(rows * size) * dtype_size(dtype));
    for (int64_t row = 0; row < rows; ++row) {
      store(dtype, out, row * size + row % size, gains[static_cast<size_t>(row / size)]);
    }
  });
}

void DialledTensors::add_codes(const std::string& name, std::vector<int32_t> words, float scale) {
  const auto rows = static_cast<int64_t>(words.size());
  add_weights(name, {rows, hidden_size_},
              [dtype = dtype_, hidden = hidden_size_, words, scale](std::byte* out) {
                constexpr uint64_t kCodeKey = 0x466F7265;
                const size_t row_bytes = static_cast<size_t>(hidden) * dtype_size(dtype);
                std::memset(out, 0, row_bytes * words.size());
                for (size_t row = 0; row < words.size(); ++row) {
                  if (words[row] < 0) continue;
                  Philox4 bits = {};
                  for (int32_t c = 0; c < hidden; ++c) {
                    const auto place = static_cast<uint32_t>(c) % 128;
                    if (place == 0) {
                      bits = philox4x32(static_cast<uint32_t>(words[row]), static_cast<uint32_t>(c),
                                        0, 0, kCodeKey);
                    }
                    const bool positive = ((bits.v[place / 32] >> (place % 32)) & 1u) != 0;
                    store(dtype, out + row * row_bytes, c, positive ? scale : -scale);
                  }
                }
              });
}

void DialledTensors::add_integers(const std::string& name, std::vector<int64_t> values) {
  const auto size = static_cast<int64_t>(values.size());
  add(name, FileDType::kI64, {size}, [values](std::byte* out) {
    std::memcpy(out, values.data(), values.size() * sizeof(int64_t));
  });
}

void DialledTensors::add_flags(const std::string& name, std::vector<bool> values) {
  const auto size = static_cast<int64_t>(values.size());
  add(name, FileDType::kBool, {size}, [values](std::byte* out) {
    for (size_t i = 0; i < values.size(); ++i) out[i] = std::byte{values[i]};
  });
}

std::vector<int32_t> dialled_head_words(const DialledShape& shape,
                                        const std::vector<int32_t>& successors) {
  std::vector<int32_t> words(successors.size(), -1);
  for (size_t id = 0; id < successors.size(); ++id) {
    const int32_t next = successors[id];
    if (next >= 0) {
      words[static_cast<size_t>(next)] = dialled_word(shape, static_cast<int32_t>(id));
    }
  }
  return words;
}

float dialled_head_scale(int32_t hidden_size) {
  return std::exp2(4.0f - std::floor(std::log2(float(hidden_size))));
}

void add_dialled_layer(const DialledLayer& layer, const std::string& base, DialledTensors* out) {
  add_tensors(layer, base, true, out);
}

void add_dialled_mlp(const DialledLayer& layer, const std::string& base, DialledTensors* out) {
  add_tensors(layer, base, false, out);
}

}  // namespace foretoken
