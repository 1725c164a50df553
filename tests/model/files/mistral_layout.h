#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "model/files/containers/safetensors.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken::test {

// A golden and the params.json that stands for its configuration.
struct MistralGolden {
  const char* model;
  int64_t head;  // whose rows lie in pairs; 0: none do
  const char* params;
};

inline constexpr MistralGolden kMistralGoldens[] = {
    {"mistral", 16,
     R"({"dim": 32, "n_layers": 3, "head_dim": 16, "hidden_dim": 48, "n_heads": 4, "n_kv_heads": 2,
         "norm_eps": 1e-5, "vocab_size": 256, "sliding_window": 24})"},
    {"mixtral", 16,
     R"({"dim": 64, "n_layers": 2, "head_dim": 16, "hidden_dim": 32, "n_heads": 4, "n_kv_heads": 2,
         "norm_eps": 1e-5, "vocab_size": 128, "rope_theta": 1000000.0, "max_seq_len": 512,
         "moe": {"num_experts": 4, "num_experts_per_tok": 2}})"},
    {"ministral3", 16,
     R"({"dim": 32, "n_layers": 2, "head_dim": 16, "hidden_dim": 48, "n_heads": 4, "n_kv_heads": 2,
         "norm_eps": 1e-5, "vocab_size": 128, "rope_theta": 10000.0, "max_position_embeddings": 512,
         "yarn": {"factor": 8, "original_max_position_embeddings": 64, "beta": 32, "alpha": 1,
                  "apply_scale": false},
         "llama_4_scaling": {"original_max_position_embeddings": 64, "beta": 0.3}})"},
    {"mistral4", 0,
     R"({"dim": 64, "n_layers": 2, "head_dim": 48, "hidden_dim": 64, "n_heads": 4, "n_kv_heads": 4,
         "norm_eps": 1e-6, "vocab_size": 128, "rope_theta": 10000.0, "max_position_embeddings": 512,
         "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
         "v_head_dim": 32, "tied_embeddings": false, "vision_encoder": {"hidden_size": 8},
         "yarn": {"factor": 8, "original_max_position_embeddings": 64, "beta": 32, "alpha": 1,
                  "apply_scale": false},
         "llama_4_scaling": {"original_max_position_embeddings": 64, "beta": 0.3},
         "moe": {"expert_parallel": 1, "expert_model_parallel": 1,
                 "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 1,
                 "expert_hidden_dim": 32, "first_k_dense_replace": 0, "routed_scale": 1.0,
                 "num_expert_groups": 1, "num_expert_groups_per_tok": 1, "route_every_n": 1}})"}};

// The golden's folder, as transformers has it.
inline std::string mistral_model(const MistralGolden& golden) {
  return std::string(kSourceFolder) + "/tests/golden/architectures/" + golden.model;
}

inline std::string mistral_name(std::string name) {
  const std::pair<const char*, const char*> parts[] = {
      {"model.embed_tokens", "tok_embeddings"},
      {"model.norm", "norm"},
      {"lm_head", "output"},
      {"model.layers", "layers"},
      {"self_attn.q_proj", "attention.wq"},
      {"self_attn.k_proj", "attention.wk"},
      {"self_attn.v_proj", "attention.wv"},
      {"self_attn.o_proj", "attention.wo"},
      {"self_attn.q_a_proj", "attention.wq_a"},
      {"self_attn.q_a_layernorm", "attention.q_a_norm"},
      {"self_attn.q_b_proj", "attention.wq_b"},
      {"self_attn.kv_a_proj_with_mqa", "attention.wkv_a_with_mqa"},
      {"self_attn.kv_a_layernorm", "attention.kv_a_norm"},
      {"self_attn.kv_b_proj", "attention.wkv_b"},
      {"input_layernorm", "attention_norm"},
      {"mlp.shared_experts.gate_proj", "shared_experts.w1"},
      {"mlp.shared_experts.down_proj", "shared_experts.w2"},
      {"mlp.shared_experts.up_proj", "shared_experts.w3"},
      {"mlp.gate_proj", "feed_forward.w1"},
      {"mlp.down_proj", "feed_forward.w2"},
      {"mlp.up_proj", "feed_forward.w3"},
      {"mlp.gate", "gate"},
      {"block_sparse_moe", "feed_forward"},
      {"post_attention_layernorm", "ffn_norm"}};
  for (const auto& [usual, own] : parts) {
    if (const size_t at = name.find(usual); at != std::string::npos) {
      name.replace(at, std::strlen(usual), own);
    }
  }
  return name;
}

inline std::string bytes_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.num_bytes)};
}

// The rows of the two halves of each head take turns.
inline std::string with_mistral_pairs(const TensorView& tensor, int64_t head) {
  const int64_t width = tensor.num_bytes / tensor.shape[0];
  std::string turned(static_cast<size_t>(tensor.num_bytes), ' ');
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const int64_t at = row % head, half = head / 2;
    const int64_t there = row - at + at % half * 2 + at / half;
    std::memcpy(turned.data() + there * width, tensor.data + row * width,
                static_cast<size_t>(width));
  }
  return turned;
}

inline TensorToWrite tensor_to_write(const std::string& name, FileDType dtype,
                                     const std::vector<int64_t>& shape, const std::string& bytes) {
  return {name, dtype, shape, [=](std::byte* to) { std::memcpy(to, bytes.data(), bytes.size()); }};
}

// Experts that lie in one tensor are a tensor for each matrix of each.
inline void add_mistral_experts(const std::string& name, const TensorView& all,
                                std::vector<TensorToWrite>* out) {
  const int64_t experts = all.shape[0], rows = all.shape[1], cols = all.shape[2];
  const bool is_pair = name.ends_with("gate_up_proj");
  const std::string front = "layers." + name.substr(13, name.find('.', 13) - 13) + ".experts.";
  const std::string bytes = bytes_of(all);
  for (int64_t e = 0; e < experts; ++e) {
    const auto add = [&](const char* matrix, int64_t first, int64_t count) {
      const auto width = static_cast<size_t>(all.num_bytes / (experts * rows));
      const size_t at = static_cast<size_t>(e * rows + first) * width;
      out->push_back(tensor_to_write(front + std::to_string(e) + "." + matrix + ".weight",
                                     all.dtype, {count, cols},
                                     bytes.substr(at, static_cast<size_t>(count) * width)));
    };
    if (!is_pair) {
      add("w2", 0, rows);
      continue;
    }
    add("w1", 0, rows / 2);
    add("w3", rows / 2, rows / 2);
  }
}

// Writes the model of a golden in Mistral's own layout.
inline void write_own_layout(const MistralGolden& golden, const ScratchFolder& folder) {
  const auto file = SafetensorsFile::open(mistral_model(golden) + "/model.safetensors").value();
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : file->tensors()) {
    if (tensor.shape.size() == 3) {
      add_mistral_experts(name, tensor, &tensors);
      continue;
    }
    const bool turns =
        name.find(".q_proj") != std::string::npos || name.find(".k_proj") != std::string::npos;
    tensors.push_back(tensor_to_write(
        mistral_name(name), tensor.dtype, tensor.shape,
        turns && golden.head > 0 ? with_mistral_pairs(tensor, golden.head) : bytes_of(tensor)));
  }
  const std::string image(16, '\0');
  tensors.push_back(tensor_to_write("vision_encoder.ln_pre.weight", FileDType::kF32, {4}, image));
  ASSERT_TRUE(write_safetensors(folder.file("consolidated.safetensors"), tensors).ok());
  folder.write("params.json", golden.params);
}

}  // namespace foretoken::test
