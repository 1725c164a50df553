#pragma once
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "dialled/safetensors_writer.h"
#include "model/config/config.h"
#include "support/scratch_folder.h"

namespace foretoken::test {

// What a made-up PEFT adapter changes.
struct AdapterWish {
  std::vector<std::string> modules = {"q_proj",  "k_proj",    "v_proj",   "o_proj",
                                      "up_proj", "gate_proj", "down_proj"};
  int rank = 4;
  uint64_t seed = 1;
  float strength = 0.5f;                 // of what it adds, relative to a matrix of about 1
  bool ends = false;                     // also the embedding and the output matrix
  bool look_up = false;                  // also the embedding
  bool dora = false;                     // magnitudes, too
  bool whole = false;                    // an embedding and an output matrix of its own
  int32_t more_ids = -1;                 // that these have beside the model's
  std::vector<int32_t> invocation = {};  // from where it acts
};

namespace adapter_parts {

inline TensorToWrite random_tensor(const std::string& name, int64_t rows, int64_t cols,
                                   float deviation, uint64_t seed) {
  return {name, FileDType::kF32, {rows, cols}, [=](std::byte* to) {
            std::mt19937_64 generator(seed);
            std::normal_distribution<float> normal(0, deviation);
            for (int64_t i = 0; i < rows * cols; ++i) {
              const float value = normal(generator);
              std::memcpy(to + 4 * i, &value, sizeof value);
            }
          }};
}

// Of a table whose elements are about a tenth, and of the matrix that makes logits.
inline void add_ends(const ModelConfig& model, const AdapterWish& wish,
                     std::vector<TensorToWrite>* tensors) {
  const int64_t hidden = model.hidden_size, vocab = model.vocab_size;
  const std::string table = "base_model.model.model.embed_tokens.lora_embedding_";
  const std::string head = "base_model.model.lm_head.lora_";
  const uint64_t seed = 1000 * wish.seed + 900;
  const float each = 1 / std::sqrt(static_cast<float>(hidden));
  tensors->push_back(random_tensor(table + "A", wish.rank, vocab, 1, seed));
  tensors->push_back(random_tensor(table + "B", hidden, wish.rank, wish.strength / 10, seed + 1));
  if (!wish.ends) return;
  tensors->push_back(random_tensor(head + "A.weight", wish.rank, hidden, each, seed + 2));
  tensors->push_back(random_tensor(head + "B.weight", vocab, wish.rank, wish.strength, seed + 3));
}

// As those of add_ends.
inline void add_wholes(const ModelConfig& model, const AdapterWish& wish,
                       std::vector<TensorToWrite>* tensors) {
  const int64_t hidden = model.hidden_size, ids = model.vocab_size + wish.more_ids;
  const uint64_t seed = 1000 * wish.seed + 950;
  const float each = 1 / std::sqrt(static_cast<float>(hidden));
  tensors->push_back(random_tensor("base_model.model.model.embed_tokens.weight", ids, hidden,
                                   wish.strength / 10, seed));
  tensors->push_back(random_tensor("base_model.model.lm_head.weight", ids, hidden,
                                   wish.strength * each, seed + 1));
}

}  // namespace adapter_parts

// Writes an adapter for a model of Llama's names into a folder, which exists.
inline void write_random_adapter(const std::string& folder, const ModelConfig& model,
                                 const AdapterWish& wish) {
  const int64_t hidden = model.hidden_size, inner = model.intermediate_size;
  const int64_t q = int64_t{model.num_heads} * model.head_dim;
  const int64_t kv = int64_t{model.num_kv_heads} * model.head_dim;
  std::vector<TensorToWrite> tensors;
  uint64_t seed = 1000 * wish.seed;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    for (const std::string& module : wish.modules) {
      const bool attends =
          module[0] == 'q' || module[0] == 'k' || module[0] == 'v' || module[0] == 'o';
      const int64_t inputs = module == "o_proj" ? q : module == "down_proj" ? inner : hidden;
      const int64_t outputs = module == "q_proj"                         ? q
                              : module == "k_proj" || module == "v_proj" ? kv
                              : module[0] == 'g' || module[0] == 'u'     ? inner
                                                                         : hidden;
      const std::string base = "base_model.model.model.layers." + std::to_string(layer) +
                               (attends ? ".self_attn." : ".mlp.") + module;
      const auto each = 1 / std::sqrt(static_cast<float>(inputs));
      tensors.push_back(
          adapter_parts::random_tensor(base + ".lora_A.weight", wish.rank, inputs, each, ++seed));
      tensors.push_back(adapter_parts::random_tensor(base + ".lora_B.weight", outputs, wish.rank,
                                                     wish.strength, ++seed));
      if (!wish.dora) continue;
      tensors.push_back(
          adapter_parts::random_tensor(base + ".lora_magnitude_vector", 1, outputs, 1, ++seed));
    }
  }
  std::vector<std::string> targets = wish.modules;
  if (wish.ends || wish.look_up) {
    adapter_parts::add_ends(model, wish, &tensors);
    targets.insert(targets.end(), {"embed_tokens", "lm_head"});
  }
  if (wish.whole) adapter_parts::add_wholes(model, wish, &tensors);
  FT_CHECK(write_safetensors(folder + "/adapter_model.safetensors", tensors).ok());
  nlohmann::json config = {{"peft_type", "LORA"},
                           {"r", wish.rank},
                           {"lora_alpha", wish.rank},
                           {"target_modules", targets},
                           {"use_dora", wish.dora}};
  if (wish.whole) config["modules_to_save"] = {"embed_tokens", "lm_head"};
  if (!wish.invocation.empty()) config["alora_invocation_tokens"] = wish.invocation;
  std::ofstream(folder + "/adapter_config.json") << config;
}

}  // namespace foretoken::test
