#include "model/dialled_writer.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/philox.h"
#include "model/convert.h"
#include "model/safetensors_writer.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kFirstCycleId = 2;
// Deviation that all layers together add to a residual of deviation 1.
constexpr float kPerturbation = 0.05f;

FileDType file_dtype(DType dtype) {
  return dtype == DType::kBF16 ? FileDType::kBF16 : FileDType::kF32;
}

void store(DType dtype, std::byte* out, int64_t index, float value) {
  if (dtype == DType::kBF16) {
    reinterpret_cast<uint16_t*>(out)[index] = bf16_from_float(value);
  } else {
    reinterpret_cast<float*>(out)[index] = value;
  }
}

// Fisher-Yates with an engine whose output the standard fixes, so that files are the same anywhere.
void shuffle(std::vector<int32_t>* values, uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[engine() % i]);
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

TensorToWrite random_tensor(const std::string& name, int64_t rows, int64_t cols, float deviation,
                            DType dtype) {
  return {name, file_dtype(dtype), {rows, cols}, [=](std::byte* out) {
            fill_random(name, rows * cols, deviation, dtype, out);
          }};
}

TensorToWrite ones(const std::string& name, int64_t size, DType dtype) {
  return {name, file_dtype(dtype), {size}, [=](std::byte* out) {
            for (int64_t i = 0; i < size; ++i) store(dtype, out, i, 1.0f);
          }};
}

// A row for each id that nothing else resembles.
TensorToWrite embedding(const DialledShape& shape) {
  return {"model.embed_tokens.weight",
          file_dtype(shape.dtype),
          {shape.vocab_size, shape.hidden_size},
          [shape](std::byte* out) {
            const size_t row_bytes = size_t(shape.hidden_size) * dtype_size(shape.dtype);
            for (int32_t id = 0; id < shape.vocab_size; ++id) {
              store_code(shape, id, 1, out + size_t(id) * row_bytes);
            }
          }};
}

// Row s is the code of the id that s follows, so that its logit wins there: 16 to 32 against sums
// of random signs.
TensorToWrite head(const DialledShape& shape) {
  return {"lm_head.weight",
          file_dtype(shape.dtype),
          {shape.vocab_size, shape.hidden_size},
          [shape](std::byte* out) {
            const size_t row_bytes = size_t(shape.hidden_size) * dtype_size(shape.dtype);
            const float scale = std::exp2(4.0f - std::floor(std::log2(float(shape.hidden_size))));
            std::memset(out, 0, row_bytes * size_t(shape.vocab_size));
            const std::vector<int32_t> successors = dialled_successors(shape);
            for (int32_t id = kFirstCycleId; id < shape.vocab_size; ++id) {
              const auto row = static_cast<size_t>(successors[static_cast<size_t>(id)]);
              store_code(shape, id, scale, out + row * row_bytes);
            }
          }};
}

std::vector<TensorToWrite> make_tensors(const DialledShape& shape) {
  const float layers = static_cast<float>(shape.num_layers);
  const int64_t hidden = shape.hidden_size, inner = shape.intermediate_size;
  const int64_t q = int64_t{shape.num_heads} * shape.head_dim;
  const int64_t kv = int64_t{shape.num_kv_heads} * shape.head_dim;
  const float in = 1 / std::sqrt(float(hidden));
  // Two blocks a layer add independent noise.
  const float out = kPerturbation / std::sqrt(2 * layers);
  std::vector<TensorToWrite> tensors = {embedding(shape)};
  for (int32_t i = 0; i < shape.num_layers; ++i) {
    const std::string base = "model.layers." + std::to_string(i) + ".";
    const DType dtype = shape.dtype;
    tensors.push_back(ones(base + "input_layernorm.weight", hidden, dtype));
    tensors.push_back(random_tensor(base + "self_attn.q_proj.weight", q, hidden, in, dtype));
    tensors.push_back(random_tensor(base + "self_attn.k_proj.weight", kv, hidden, in, dtype));
    tensors.push_back(random_tensor(base + "self_attn.v_proj.weight", kv, hidden, in, dtype));
    tensors.push_back(random_tensor(base + "self_attn.o_proj.weight", hidden, q,
                                    out / std::sqrt(float(q)), dtype));
    tensors.push_back(ones(base + "post_attention_layernorm.weight", hidden, dtype));
    tensors.push_back(random_tensor(base + "mlp.gate_proj.weight", inner, hidden, in, dtype));
    tensors.push_back(random_tensor(base + "mlp.up_proj.weight", inner, hidden, in, dtype));
    tensors.push_back(random_tensor(base + "mlp.down_proj.weight", hidden, inner,
                                    out / std::sqrt(float(inner)), dtype));
  }
  tensors.push_back(ones("model.norm.weight", hidden, shape.dtype));
  tensors.push_back(head(shape));
  return tensors;
}

Status check_shape(const DialledShape& shape) {
  const auto too_small = [](const char* name, int64_t value, int64_t least) {
    return invalid_argument("a dialled checkpoint needs " + std::string(name) + " of at least " +
                            std::to_string(least) + ", not " + std::to_string(value));
  };
  if (shape.vocab_size < 8) return too_small("vocab_size", shape.vocab_size, 8);
  if (shape.num_layers < 1) return too_small("num_layers", shape.num_layers, 1);
  if (shape.num_kv_heads < 1) return too_small("num_kv_heads", shape.num_kv_heads, 1);
  if (shape.intermediate_size < 1)
    return too_small("intermediate_size", shape.intermediate_size, 1);
  if (shape.num_heads < 1 || shape.num_heads % shape.num_kv_heads != 0 || shape.head_dim < 2 ||
      shape.head_dim % 2 != 0) {
    return invalid_argument(
        "a dialled checkpoint needs an even head_dim and a num_heads that is a multiple of "
        "num_kv_heads");
  }
  if (shape.agreement < 0 || shape.agreement > 1) {
    return invalid_argument("agreement must lie between 0 and 1");
  }
  // The largest of all products of two codes is about sqrt(2 hidden ln(vocab^2 / 2)); it has to
  // stay below 0.85 hidden, the product of a code with itself being hidden.
  const double pairs = 0.5 * shape.vocab_size * shape.vocab_size;
  const auto least = static_cast<int64_t>(std::ceil(2 * std::log(pairs) / (0.85 * 0.85)));
  if (shape.hidden_size < least) return too_small("hidden_size", shape.hidden_size, least);
  return {};
}

Status write_json(const std::string& folder, const char* name, const Json& json) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::ofstream file(path, std::ios::trunc);
  file << json.dump(1) << "\n";
  file.close();
  if (!file)
    return invalid_argument("cannot write " + path + "; check that the folder is writable");
  return {};
}

Json make_config(const DialledShape& shape) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", shape.vocab_size},
          {"hidden_size", shape.hidden_size},
          {"intermediate_size", shape.intermediate_size},
          {"num_hidden_layers", shape.num_layers},
          {"num_attention_heads", shape.num_heads},
          {"num_key_value_heads", shape.num_kv_heads},
          {"head_dim", shape.head_dim},
          {"max_position_embeddings", shape.max_position_embeddings},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", false},
          {"bos_token_id", nullptr},
          {"eos_token_id", 1},
          {"torch_dtype", dtype_name(shape.dtype)}};
}

// Words of a byte-level vocabulary: the decoder turns "Ġ" into the space before each word.
Json make_tokenizer(int32_t vocab_size) {
  Json vocab = {{"<unk>", 0}, {"</s>", 1}};
  for (int32_t id = kFirstCycleId; id < vocab_size; ++id) {
    vocab["\u0120t" + std::to_string(id)] = id;
  }
  const auto special = [](int32_t id, const char* content) {
    return Json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  const Json split = {{"type", "WhitespaceSplit"}};
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", true},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", Json::array({special(0, "<unk>"), special(1, "</s>")})},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", Json::array({split, bytes})}}},
          {"post_processor", nullptr},
          {"decoder", bytes},
          {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}}}};
}

}  // namespace

DialledCycle::DialledCycle(int32_t vocab_size, uint64_t seed)
    : order_(static_cast<size_t>(vocab_size - kFirstCycleId)),
      next_(static_cast<size_t>(vocab_size), -1) {
  std::iota(order_.begin(), order_.end(), kFirstCycleId);
  shuffle(&order_, seed);
  for (int64_t i = 0; i < length(); ++i) next_[static_cast<size_t>(at(i))] = at(i + 1);
}

std::vector<int32_t> dialled_successors(const DialledShape& shape) {
  const DialledCycle cycle(shape.vocab_size, shape.seed);
  std::vector<int32_t> successors(static_cast<size_t>(shape.vocab_size), -1);
  std::vector<int32_t> ids;
  for (int32_t id = kFirstCycleId; id < shape.vocab_size; ++id) {
    successors[static_cast<size_t>(id)] = cycle.next(id);
    ids.push_back(id);
  }
  shuffle(&ids, shape.seed ^ 0xA9EEull);
  const auto wrong =
      static_cast<size_t>(std::lround((1 - shape.agreement) * static_cast<double>(ids.size())));
  // A rotation of the successors of the chosen ids keeps every id the successor of one id.
  for (size_t i = 0; i + 1 < wrong; ++i) {
    std::swap(successors[static_cast<size_t>(ids[i])], successors[static_cast<size_t>(ids[i + 1])]);
  }
  return successors;
}

Status write_dialled_checkpoint(const std::string& folder, const DialledShape& shape) {
  FT_RETURN_IF_ERROR(check_shape(shape));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return invalid_argument("cannot create " + folder + " (" + error.message() +
                            "); choose another folder");
  }
  FT_RETURN_IF_ERROR(write_json(folder, "config.json", make_config(shape)));
  FT_RETURN_IF_ERROR(write_json(folder, "generation_config.json", {{"eos_token_id", 1}}));
  FT_RETURN_IF_ERROR(write_json(folder, "tokenizer.json", make_tokenizer(shape.vocab_size)));
  const Json tokenizer_config = {
      {"tokenizer_class", "PreTrainedTokenizerFast"},
      {"model_max_length", shape.max_position_embeddings},
      {"unk_token", "<unk>"},
      {"eos_token", "</s>"},
      {"add_bos_token", false},
      {"clean_up_tokenization_spaces", false},
      {"chat_template", "{% for message in messages %}{{ message['content'] }}{% endfor %}"}};
  FT_RETURN_IF_ERROR(write_json(folder, "tokenizer_config.json", tokenizer_config));
  return write_safetensors((std::filesystem::path(folder) / "model.safetensors").string(),
                           make_tensors(shape));
}

}  // namespace foretoken
