#pragma once
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "dialled/safetensors_writer.h"
#include "model/config/config.h"
#include "model/files/containers/json_file.h"
#include "model/gguf_matrices.h"

namespace foretoken::test {

// The tiny models of tests/golden/architectures as mlx_lm's tools would save them: what sanitize()
// of a family's file in mlx_lm/models makes of its tensors.

inline void write_floats(const std::string& path, const Matrices& all) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, matrix] : all) {
    tensors.push_back({name, FileDType::kF32, matrix.shape, [&values = matrix.values](auto* to) {
                         std::memcpy(to, values.data(), values.size() * sizeof(float));
                       }});
  }
  FT_CHECK(write_safetensors(path, tensors).ok());
}

// `change` gives each tensor its name, "" to leave it out, and may change it.
inline void rename_all(Matrices* all,
                       const std::function<std::string(const std::string&, Matrix&)>& change) {
  Matrices renamed;
  for (auto& [name, matrix] : *all) {
    const std::string own = change(name, matrix);
    if (!own.empty()) renamed[own] = std::move(matrix);
  }
  *all = std::move(renamed);
}

inline std::string replaced(std::string name, const std::string& from, const std::string& to) {
  const size_t at = name.find(from);
  return at == std::string::npos ? name : name.replace(at, from.size(), to);
}

// Experts that lie apart become one tensor, with Llama's names of its kinds.
inline void stack_for_mlx(Matrices* all) {
  static const std::regex kForm(R"((.*)\.experts\.(\d+)\.(\w+)\.weight)");
  std::map<std::string, std::map<int, Matrix>> stacks;
  rename_all(all, [&](const std::string& name, Matrix& matrix) -> std::string {
    std::smatch match;
    if (!std::regex_match(name, match, kForm)) return name;
    const std::string kind = match[3];
    const std::string own = kind == "w1"   ? "gate_proj"
                            : kind == "w2" ? "down_proj"
                            : kind == "w3" ? "up_proj"
                                           : kind;
    stacks[match[1].str() + ".switch_mlp." + own + ".weight"][std::stoi(match[2])] =
        std::move(matrix);
    return "";
  });
  for (auto& [name, experts] : stacks) {
    Matrix& to = (*all)[name];
    to.shape = {std::ssize(experts), experts[0].shape[0], experts[0].shape[1]};
    for (const auto& [number, one] : experts) {
      to.values.insert(to.values.end(), one.values.begin(), one.values.end());
    }
  }
}

// Kernels [channels, 1, width] become [channels, width, 1].
inline void turn_convolutions(Matrices* all) {
  for (auto& [name, matrix] : *all) {
    const bool is_conv = name.find("conv") != std::string::npos && matrix.shape.size() == 3;
    if (is_conv) std::swap(matrix.shape[1], matrix.shape[2]);
  }
}

inline void add_one(Matrix& matrix) {
  for (float& value : matrix.values) ++value;
}
inline void multiply(Matrix& matrix, double factor) {
  for (float& value : matrix.values) value *= static_cast<float>(factor);
}

// kv_b_proj becomes the keys' part of each head, turned, and that of the values.
inline void divide_latents(const ModelConfig& config, Matrices* all) {
  const int64_t nope = config.latent.nope_dim, value = config.latent.value_dim,
                rank = config.latent.kv_rank;
  Matrices parts;
  rename_all(all, [&](const std::string& name, Matrix& joined) -> std::string {
    if (name.find("kv_b_proj.weight") == std::string::npos) return name;
    const int64_t heads = joined.shape[0] / (nope + value);
    Matrix& keys = parts[replaced(name, "kv_b_proj", "embed_q")];
    Matrix& values = parts[replaced(name, "kv_b_proj", "unembed_out")];
    keys.shape = {heads, rank, nope};
    values.shape = {heads, value, rank};
    for (int64_t head = 0; head < heads; ++head) {
      const float* of_head = joined.values.data() + head * (nope + value) * rank;
      for (int64_t c = 0; c < rank; ++c) {
        for (int64_t r = 0; r < nope; ++r) keys.values.push_back(of_head[r * rank + c]);
      }
      values.values.insert(values.values.end(), of_head + nope * rank,
                           of_head + (nope + value) * rank);
    }
    return "";
  });
  all->merge(parts);
}

// The two halves of a tensor, by its last dimension but one.
inline std::pair<Matrix, Matrix> halves_of(const Matrix& whole) {
  std::vector<int64_t> shape = whole.shape;
  const size_t rows = shape.size() - 2;
  shape[rows] /= 2;
  Matrix first{shape, {}}, second{shape, {}};
  const int64_t half = shape[rows] * shape[rows + 1];
  for (int64_t at = 0; at < std::ssize(whole.values); at += 2 * half) {
    const auto begin = whole.values.begin() + at;
    first.values.insert(first.values.end(), begin, begin + half);
    second.values.insert(second.values.end(), begin + half, begin + 2 * half);
  }
  return {first, second};
}

// Gates and ups of one tensor become two.
inline void split_for_mlx(const std::string& joined, const std::string& gates,
                          const std::string& ups, Matrices* all) {
  Matrices parts;
  rename_all(all, [&](const std::string& name, Matrix& matrix) -> std::string {
    if (name.find(joined) == std::string::npos) return name;
    auto [first, second] = halves_of(matrix);
    parts[replaced(name, joined, gates)] = std::move(first);
    parts[replaced(name, joined, ups)] = std::move(second);
    return "";
  });
  all->merge(parts);
}

inline void sanitize_step(Matrices* all) {
  rename_all(all, [](const std::string& name, Matrix& matrix) -> std::string {
    if (name.starts_with("vi")) return "";
    if (name.ends_with("norm.weight")) add_one(matrix);
    for (const auto& [from, to] : {std::pair(".moe.gate_proj.", ".mlp.switch_mlp.gate_proj."),
                                   {".moe.up_proj.", ".mlp.switch_mlp.up_proj."},
                                   {".moe.down_proj.", ".mlp.switch_mlp.down_proj."},
                                   {".moe.gate.", ".mlp.gate.gate."},
                                   {".moe.router_bias", ".mlp.gate.router_bias"},
                                   {".share_expert.", ".mlp.share_expert."}}) {
      if (name.find(from) != std::string::npos) return replaced(name, from, to);
    }
    return name;
  });
}

inline void sanitize_kimi(const ModelConfig& config, Matrices* all) {
  stack_for_mlx(all);
  turn_convolutions(all);
  divide_latents(config, all);
  rename_all(all, [](const std::string& name, Matrix&) {
    std::string own = replaced(name, "block_sparse_moe.gate.e_score", "mlp.e_score");
    for (const char* kind : {"q", "k", "v"}) {
      own = replaced(own, std::string(kind) + "_conv1d.", std::string(kind) + "_conv.conv.");
    }
    return replaced(own, "block_sparse_moe", "mlp");
  });
}

// Keys are multiplied by what enters attention alone, and by their own multiplier nowhere.
inline void sanitize_falcon_h1(const nlohmann::json& config, Matrices* all) {
  const auto number = [&](const char* name) { return config.at(name).get<double>(); };
  const auto states = config.at("ssm_multipliers").get<std::vector<double>>();
  const auto mlp = config.at("mlp_multipliers").get<std::vector<double>>();
  const auto inner = config.at("mamba_d_ssm").get<int64_t>();
  const int64_t maps =
      config.at("mamba_n_groups").get<int64_t>() * config.at("mamba_d_state").get<int64_t>();
  turn_convolutions(all);
  for (auto& [name, matrix] : *all) {
    const auto ends = [&](const char* ending) { return name.ends_with(ending); };
    if (ends("embed_tokens.weight")) multiply(matrix, number("embedding_multiplier"));
    if (ends("lm_head.weight")) multiply(matrix, number("lm_head_multiplier"));
    if (ends("q_proj.weight") || ends("k_proj.weight")) {
      multiply(matrix, number("attention_in_multiplier"));
    }
    if (ends(".o_proj.weight")) multiply(matrix, number("attention_out_multiplier"));
    if (ends("out_proj.weight")) multiply(matrix, number("ssm_out_multiplier"));
    if (ends("gate_proj.weight")) multiply(matrix, mlp[0]);
    if (ends("down_proj.weight")) multiply(matrix, mlp[1]);
    if (!ends("in_proj.weight")) continue;
    const int64_t width = matrix.shape[1];
    for (int64_t i = 0; i < std::ssize(matrix.values); ++i) {
      const int64_t row = i / width;
      const size_t part = row < inner                  ? 0
                          : row < 2 * inner            ? 1
                          : row < 2 * inner + maps     ? 2
                          : row < 2 * inner + 2 * maps ? 3
                                                       : 4;
      matrix.values[static_cast<size_t>(i)] *=
          static_cast<float>(number("ssm_in_multiplier") * states[part]);
    }
  }
}

inline void sanitize_gpt2(Matrices* all) {
  rename_all(all, [](const std::string& name, Matrix& matrix) {
    const bool turned = matrix.shape.size() == 2 && (name.find(".attn.") != std::string::npos ||
                                                     name.find(".mlp.") != std::string::npos);
    if (turned) matrix = transposed(matrix);
    return replaced(name, "transformer.", "model.");
  });
}

inline void sanitize_gpt_neox(Matrices* all) {
  rename_all(all, [](const std::string& name, Matrix&) {
    const std::string own = replaced(replaced(name, "gpt_neox.layers.", "h."), "gpt_neox.", "");
    return "model." + own;
  });
}

// Experts below each other become tensors of their own, downs turned.
inline void sanitize_dbrx(const ModelConfig& config, Matrices* all) {
  Matrices parts;
  rename_all(all, [&](const std::string& name, Matrix& matrix) -> std::string {
    if (name.find("experts.mlp.") == std::string::npos) return name;
    const int64_t rows = matrix.shape[0] / config.experts.count;
    for (int32_t e = 0; e < config.experts.count; ++e) {
      std::vector<int64_t> own;
      for (int64_t row = 0; row < rows; ++row) own.push_back(e * rows + row);
      const Matrix one = picked_rows(matrix, own);
      parts[replaced(name, ".mlp.", "." + std::to_string(e) + ".") + ".weight"] =
          name.ends_with("w2") ? transposed(one) : one;
    }
    return "";
  });
  all->merge(parts);
}

inline void sanitize_granite(Matrices* all) {
  turn_convolutions(all);
  split_for_mlx("block_sparse_moe.input_linear", "block_sparse_moe.switch_mlp.gate_proj",
                "block_sparse_moe.switch_mlp.up_proj", all);
  rename_all(all, [](const std::string& name, Matrix&) {
    return replaced(name, "block_sparse_moe.output_linear",
                    "block_sparse_moe.switch_mlp.down_proj");
  });
}

inline void sanitize_dense_granite(Matrices* all) {
  split_for_mlx("shared_mlp.input_linear", "mlp.gate_proj", "mlp.up_proj", all);
  rename_all(all, [](const std::string& name, Matrix&) {
    return replaced(name, "shared_mlp.output_linear", "mlp.down_proj");
  });
}

// Of Qwen 3 Next and 3.5: norms of gated delta networks count from 1; draft modules and vision are
// left out.
inline void sanitize_qwen(bool has_vision, Matrices* all) {
  stack_for_mlx(all);
  turn_convolutions(all);
  rename_all(all, [&](const std::string& name, Matrix& matrix) -> std::string {
    if (name.find("mtp.") != std::string::npos || name.find("visual") != std::string::npos) {
      return "";
    }
    if (name.ends_with("norm.weight") && !name.ends_with("linear_attn.norm.weight")) {
      add_one(matrix);
    }
    if (!has_vision) return name;
    const std::string own = replaced(name, "model.language_model.", "model.");
    return "language_model." + own;
  });
}

inline void sanitize_nemotron(Matrices* all) {
  stack_for_mlx(all);
  turn_convolutions(all);
  rename_all(all, [](const std::string& name, Matrix&) -> std::string {
    if (name.starts_with("mtp.")) return "";
    return replaced(replaced(name, "switch_mlp.up_proj", "switch_mlp.fc1"), "switch_mlp.down_proj",
                    "switch_mlp.fc2");
  });
}

inline void sanitize_lfm2_moe(Matrices* all) {
  stack_for_mlx(all);
  turn_convolutions(all);
  rename_all(all, [](const std::string& name, Matrix&) {
    std::string own = replaced(name, "feed_forward.w1.", "feed_forward.gate_proj.");
    own = replaced(own, "feed_forward.w2.", "feed_forward.down_proj.");
    return replaced(own, "feed_forward.w3.", "feed_forward.up_proj.");
  });
}

// What sanitize() of the family makes of the golden's tensors.
inline void sanitize(const std::string& golden, const nlohmann::json& json,
                     const ModelConfig& config, Matrices* all) {
  if (golden == "step3p7") return sanitize_step(all);
  if (golden == "kimi_linear") return sanitize_kimi(config, all);
  if (golden == "falcon_h1") return sanitize_falcon_h1(json, all);
  if (golden == "gpt2") return sanitize_gpt2(all);
  if (golden == "gpt_neox") return sanitize_gpt_neox(all);
  if (golden == "dbrx") return sanitize_dbrx(config, all);
  if (golden == "granite4-h" || golden == "granitemoe") return sanitize_granite(all);
  if (golden == "granite4") return sanitize_dense_granite(all);
  if (golden == "qwen3_next" || golden == "qwen3_5") return sanitize_qwen(golden == "qwen3_5", all);
  if (golden == "nemotron_h-moe") return sanitize_nemotron(all);
  if (golden == "lfm2_moe") return sanitize_lfm2_moe(all);
  if (config.recurrent.exists()) turn_convolutions(all);
  if (golden == "longcat_flash") divide_latents(config, all);
  stack_for_mlx(all);
  rename_all(all, [&](const std::string& name, Matrix&) -> std::string {
    if (name.find("mtp") != std::string::npos) return "";
    if (golden == "ernie4_5_moe" && name.find("e_score") != std::string::npos) return "";
    if (golden == "exaone_moe") return replaced(name, "mlp.e_score", "mlp.gate.e_score");
    if (golden == "bailing_moe_v2") return replaced(name, "mlp.gate.w", "mlp.gate.gate_proj.w");
    return name;
  });
}

}  // namespace foretoken::test
