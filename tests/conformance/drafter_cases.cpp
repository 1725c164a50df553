#include "conformance/drafter_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dialled/safetensors_writer.h"
#include "draft/registry.h"
#include "model/files/checkpoint.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// What the bundled head of a drafter can make at most.
int max_draft_tokens_of(const std::string& drafter) {
  if (drafter == "dflash" || drafter == "dspark" || drafter == "domino") return 7;
  if (drafter == "medusa") return 2;
  return drafter == "mlp_speculator" ? 3 : kMaxSpeculativeTokens;
}

// The bundled draft model, said to draft behind a token that no text has: only its first draft is
// any good.
std::string masked_draft_model() {
  static const test::ScratchFolder folder;
  static const bool written = [] {
    const std::filesystem::path from = bundled_folder("foretoken-7m-draft");
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      const std::string name = entry.path().filename().string();
      if (name != "config.json") {
        std::filesystem::create_symlink(entry.path(), folder.file(name));
        continue;
      }
      nlohmann::json config = nlohmann::json::parse(std::ifstream(entry.path()));
      config["pard_token"] = 1;
      folder.write(name, config.dump());
    }
    return true;
  }();
  return written ? folder.path() : std::string();
}

// The bundled EAGLE-3 head with a state of masks that it was not trained with: only its first draft
// is any good.
std::string masked_eagle3() {
  static const test::ScratchFolder folder;
  static const bool written = [] {
    const std::filesystem::path from = bundled_folder("foretoken-7m-eagle3");
    std::filesystem::create_symlink(from / "model.safetensors",
                                    folder.file("model-00001-of-00002.safetensors"));
    nlohmann::json config = nlohmann::json::parse(std::ifstream(from / "config.json"));
    const int64_t width = 3 * config.at("hidden_size").get<int64_t>();
    const TensorToWrite mask = {
        "mask_hidden", FileDType::kF32, {1, 1, width}, [width](std::byte* to) {
          std::fill_n(reinterpret_cast<float*>(to), width, 0.5f);
        }};
    EXPECT_TRUE(write_safetensors(folder.file("model-00002-of-00002.safetensors"), {{mask}}).ok());
    config["mask_token_id"] = 1;
    folder.write("config.json", config.dump());
    return true;
  }();
  return written ? folder.path() : std::string();
}

// Zeros, or another number, in the place of weights.
TensorToWrite filled(const std::string& name, const std::vector<int64_t>& shape, float value) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return {name, FileDType::kF32, shape, [count, value](std::byte* to) {
            std::fill_n(reinterpret_cast<float*>(to), count, value);
          }};
}

// An assistant of the bundled target whose one layer adds nothing: what the bundled EAGLE head
// makes of a token and a state, without its layer. A draft or so in ten is good.
struct LinearAssistant {
  const Checkpoint eagle = Checkpoint::open(bundled_folder("foretoken-7m-eagle")).value();
  const Checkpoint target = Checkpoint::open(bundled_model()).value();
  const nlohmann::json sizes =
      nlohmann::json::parse(std::ifstream(bundled_folder("foretoken-7m") + "/config.json"));
  std::vector<TensorToWrite> tensors;

  void copy(const Checkpoint& from, const std::string& name, const std::string& as) {
    const TensorView* source = from.find(name).value();
    tensors.push_back({as, source->dtype, source->shape, [source](std::byte* to) {
                         std::memcpy(to, source->data, static_cast<size_t>(source->num_bytes));
                       }});
  }
  void add_layer(int64_t hidden, int64_t heads, int64_t dim) {
    const std::string base = "model.layers.0.";
    for (const char* norm : {"input", "post_attention", "pre_feedforward", "post_feedforward"}) {
      tensors.push_back(filled(base + norm + "_layernorm.weight", {hidden}, 1));
    }
    tensors.push_back(filled(base + "layer_scalar", {1}, 1));
    tensors.push_back(filled(base + "self_attn.q_norm.weight", {dim}, 1));
    tensors.push_back(filled(base + "self_attn.q_proj.weight", {heads * dim, hidden}, 0));
    tensors.push_back(filled(base + "self_attn.o_proj.weight", {hidden, heads * dim}, 0));
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      tensors.push_back(filled(base + "mlp." + name + ".weight", {hidden, hidden}, 0));
    }
  }
  nlohmann::json config() const {
    nlohmann::json text = {{"model_type", "gemma4_text"},
                           {"num_hidden_layers", 1},
                           {"layer_types", {"full_attention"}},
                           {"intermediate_size", sizes.at("hidden_size")},
                           {"global_head_dim", sizes.at("head_dim")}};
    for (const char* name : {"vocab_size", "hidden_size", "num_attention_heads", "head_dim",
                             "num_key_value_heads", "rms_norm_eps", "max_position_embeddings"}) {
      text[name] = sizes.at(name);
    }
    return {{"architectures", {"Gemma4AssistantForCausalLM"}},
            {"model_type", "gemma4_assistant"},
            {"backbone_hidden_size", sizes.at("hidden_size")},
            {"text_config", text}};
  }
};

std::string linear_assistant() {
  static const test::ScratchFolder folder;
  static const bool written = [] {
    LinearAssistant made;
    const int64_t hidden = made.sizes.at("hidden_size");
    made.copy(made.eagle, "fc.weight", "pre_projection.weight");
    made.copy(made.target, "model.norm.weight", "model.norm.weight");
    made.copy(made.target, "model.embed_tokens.weight", "model.embed_tokens.weight");
    made.add_layer(hidden, made.sizes.at("num_attention_heads"), made.sizes.at("head_dim"));
    made.tensors.push_back(
        {"post_projection.weight", FileDType::kF32, {hidden, hidden}, [hidden](std::byte* to) {
           auto* rows = reinterpret_cast<float*>(to);
           std::fill_n(rows, hidden * hidden, 0.0f);
           for (int64_t i = 0; i < hidden; ++i) rows[i * hidden + i] = 1;
         }});
    EXPECT_TRUE(write_safetensors(folder.file("model.safetensors"), made.tensors).ok());
    folder.write("config.json", made.config().dump());
    return true;
  }();
  return written ? folder.path() : std::string();
}

// Numbers up to `scale`, which follow no pattern that a model would have.
TensorToWrite mixed(const std::string& name, int64_t rows, int64_t cols, float scale) {
  return {name, FileDType::kF32, {rows, cols}, [count = rows * cols, scale](std::byte* to) {
            auto* numbers = reinterpret_cast<float*>(to);
            for (int64_t i = 0; i < count; ++i) {
              numbers[i] = scale * static_cast<float>(i * 37 % 101 - 50) / 50;
            }
          }};
}

// The DFlash head with a unit that was not trained: what it adds changes about half of all drafts
// but the first.
std::string untrained_domino() {
  static const test::ScratchFolder folder;
  static const bool written = [] {
    const std::string from =
        std::string(foretoken::kSourceFolder) + "/tests/golden/heads/foretoken-7m-dflash";
    std::filesystem::create_symlink(from + "/model.safetensors",
                                    folder.file("model-00001-of-00002.safetensors"));
    nlohmann::json config = nlohmann::json::parse(std::ifstream(from + "/config.json"));
    const int64_t hidden = config.at("hidden_size"), state = 24, rank = 16;
    const std::vector<TensorToWrite> unit = {
        mixed("prefix_gru.weight_ih_l0", 3 * state, hidden, 0.1f),
        mixed("prefix_gru.weight_hh_l0", 3 * state, state, 0.1f),
        mixed("embed_proj.0.weight", rank, hidden + state, 0.1f),
        mixed("embed_proj.2.weight", config.at("vocab_size"), rank, 1)};
    EXPECT_TRUE(write_safetensors(folder.file("model-00002-of-00002.safetensors"), unit).ok());
    config["architectures"] = {"DominoDraftModel"};
    config["dflash_config"].update({{"projector_type", "domino"},
                                    {"emb_dim", rank},
                                    {"gru_hidden_dim", state},
                                    {"pure_draft_prefix_len", 1}});
    folder.write("config.json", config.dump());
    return true;
  }();
  return written ? folder.path() : std::string();
}

// Folder of models/ that a drafter of the registry reads for the bundled target; empty: none.
std::string folder_of(const std::string& drafter) {
  if (!find_drafter(drafter).value()->traits.reads_files) return "";
  if (drafter == "draft_model") return bundled_folder("foretoken-7m-draft");
  if (drafter == "pard") return masked_draft_model();
  if (drafter == "p_eagle") return masked_eagle3();
  if (drafter == "gemma4_assistant") return linear_assistant();
  if (drafter == "domino") return untrained_domino();
  if (max_draft_tokens_of(drafter) < kMaxSpeculativeTokens) {
    return std::string(foretoken::kSourceFolder) + "/tests/golden/heads/foretoken-7m-" + drafter;
  }
  return bundled_folder("foretoken-7m-" + drafter);
}

}  // namespace

std::string bundled_folder(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/models/" + name;
}

std::vector<DrafterCase> bundled_drafters(int num_draft_tokens) {
  std::vector<DrafterCase> cases;
  for (const DrafterEntry& entry : drafters()) {
    SpeculativeConfig config;
    config.method = entry.name;
    config.model = folder_of(entry.name);
    config.num_speculative_tokens = std::min(num_draft_tokens, max_draft_tokens_of(config.method));
    config.length_policy = "fixed";
    if (config.method == "ngram") {
      config.prompt_lookup_min = 1;
      config.prompt_lookup_max = 4;
    } else if (config.method == "suffix") {
      // Short pieces, so that texts without repeats are drafted too.
      config.method_fields = {{"suffix_decoding_max_tree_depth", 8},
                              {"suffix_decoding_max_spec_factor", 4}};
    } else if (entry.traits.reads_files) {
      EXPECT_TRUE(std::ifstream(config.model + "/config.json").good())
          << "drafter '" << entry.name << "' has no bundled model at " << config.model;
    }
    cases.push_back({entry.name, std::move(config)});
  }
  return cases;
}

DrafterCase bundled_drafter(const std::string& name, int num_draft_tokens) {
  for (DrafterCase& drafter : bundled_drafters(num_draft_tokens)) {
    if (drafter.name == name) return std::move(drafter);
  }
  ADD_FAILURE() << "no drafter '" << name << "'";
  return {};
}

std::vector<std::string> drafter_names() {
  std::vector<std::string> names;
  for (const DrafterEntry& entry : drafters()) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> math500_prompts() {
  std::ifstream in(std::string(foretoken::kSourceFolder) + "/bench/prompts/math500/problems.jsonl");
  std::vector<std::string> prompts;
  for (std::string line; std::getline(in, line);) {
    prompts.push_back(nlohmann::json::parse(line).at("prompt"));
  }
  EXPECT_EQ(prompts.size(), 500u);
  return prompts;
}

RunResult run_with_drafters(const Variant& variant, std::vector<SpeculativeConfig> drafters,
                            const std::vector<std::string>& prompts, bool sampled, int max_tokens) {
  EngineConfig config = config_of(variant, bundled_model());
  config.speculative = std::move(drafters);
  return run_config(config, variant, prompts, sampled, max_tokens);
}

void PrintTo(const SampledDrafter& c, std::ostream* out) {
  *out << c.drafter << (c.sampled ? " sampled" : "");
}

std::vector<SampledDrafter> sampled_drafters() {
  std::vector<SampledDrafter> cases;
  for (const std::string& name : drafter_names()) {
    for (const bool sampled : {false, true}) cases.push_back({name, sampled});
  }
  return cases;
}

}  // namespace foretoken
