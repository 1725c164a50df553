#include "draft/parts/method.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text/ascii_text.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string method_in(const std::string& name) {
  const std::string text = lower_case(name);
  for (const char* part : {"dflash", "dspark", "domino", "medusa"}) {
    if (contains(text, part)) return part;
  }
  for (const char* part : {"peagle", "p-eagle", "p_eagle"}) {
    if (contains(text, part)) return "p_eagle";
  }
  for (const char* part : {"mlp_speculator", "mlp-speculator", "mlpspeculator"}) {
    if (contains(text, part)) return "mlp_speculator";
  }
  for (const char* part : {"eagle3", "eagle-3", "eagle_3"}) {
    if (contains(text, part)) return "eagle3";
  }
  if (contains(text, "eagle")) return "eagle";
  if (contains(text, "gemma") && contains(text, "assistant")) return "gemma4_assistant";
  if (contains(text, "mtp")) return "mtp";
  return {};
}

// The method of heads without a layer that attends; empty: of another one.
std::string chain_method(const Checkpoint& checkpoint) {
  const auto has = [&](const std::string& name) { return checkpoint.tensors().contains(name); };
  for (const char* prefix : {"", "speculator."}) {
    const std::string base = prefix;
    if (has(base + "emb.0.weight") && has(base + "proj.0.weight")) return "mlp_speculator";
  }
  for (const char* prefix : {"", "medusa_heads.", "medusa_head."}) {
    const std::string base = prefix;
    if (has(base + "0.0.linear.weight") || has(base + "blocks.0.layers.0.weight")) return "medusa";
  }
  return {};
}

// Of files without a tensor that tells them from those of other methods. It may be missing: then
// what config.json calls them counts, whose reader names what is not there.
MethodGuess without_mark(const char* method, const std::string& named) {
  if (named.empty() || named == method) return {method, true};
  return {named, false};
}

// `named`: what config.json calls the files; empty: nothing that is known.
MethodGuess method_of_tensors(const Checkpoint& checkpoint, const std::string& named) {
  bool fc = false, eagle3 = false, mtp = false, embedding = false, first_layer = false;
  bool block = false, markov = false, carried = false, masks = false, chained = false;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    const bool of_module = name.starts_with("mtp.");
    fc |= name.ends_with("fc.weight") && !of_module;
    eagle3 |= name == "d2t" || contains(name, "midlayer.") || name.ends_with("hidden_norm.weight");
    // EAGLE heads norm each layer's state; one that makes entries of states norms them once.
    block |= name == "hidden_norm.weight" || name == "model.hidden_norm.weight";
    markov |= contains(name, "markov_head.");
    carried |= contains(name, "prefix_gru.");
    masks |= name == "mask_hidden" || name == "model.mask_hidden";
    mtp |= name.ends_with("eh_proj.weight") || contains(name, "mtp_layers.") ||
           contains(name, "mtp_linear_proj.") || name == "mtp.fc.weight";
    chained |= name == "post_projection.weight";
    embedding |= name.ends_with("embed_tokens.weight") || name.ends_with("embeddings.weight");
    first_layer |= contains(name, "layers.0.") && !of_module;
  }
  // Of a language model's layers, between two projections.
  if (chained && first_layer) return {"gemma4_assistant", true};
  if (fc && block) return {carried ? "domino" : markov ? "dspark" : "dflash", true};
  if (fc && masks) return {"p_eagle", true};
  // EAGLE-3's are called EAGLE's, too.
  if (fc && eagle3) return without_mark("eagle3", named == "eagle" ? std::string() : named);
  if (fc) return without_mark("eagle", named);
  // A target may hold its MTP modules itself.
  if (mtp) return {"mtp", !(embedding && first_layer)};
  if (embedding && first_layer) return without_mark("draft_model", named);
  const std::string chain = chain_method(checkpoint);
  return {chain, !chain.empty()};
}

// What was trained to draft behind mask tokens says which.
bool names_mask(const nlohmann::json& config) {
  return config.contains("pard_token") || config.contains("ptd_token_id");
}

// By the names that config.json has for what it describes; empty: none that is known.
std::string method_of_class(const nlohmann::json& config) {
  if (config.contains("speculators_model_type") && config["speculators_model_type"].is_string()) {
    return method_in(config["speculators_model_type"]);
  }
  for (const char* field : {"architectures", "model_type"}) {
    if (!config.contains(field)) continue;
    const std::string method = method_in(config[field].dump());
    if (method == "eagle3" && names_mask(config)) return "p_eagle";
    if (!method.empty()) return method;
  }
  return {};
}

MethodGuess method_of_config(const nlohmann::json& config) {
  if (const std::string named = method_of_class(config); !named.empty()) return {named, false};
  if (config.contains("draft_vocab_size")) return {"eagle3", false};
  if (config.contains("medusa_num_heads")) return {"medusa", false};
  return {};
}

}  // namespace

MethodGuess method_of_files(const std::string& folder) {
  if (folder.empty()) return {};
  const auto read = read_model_json(folder, "config.json");
  const nlohmann::json config = read.ok() ? read.value() : nlohmann::json::object();
  if (const auto checkpoint = Checkpoint::open(folder); checkpoint.ok()) {
    const MethodGuess guess = method_of_tensors(checkpoint.value(), method_of_class(config));
    if (guess.method == "draft_model" && names_mask(config)) return {"pard", true};
    if (!guess.method.empty()) return guess;
  }
  return method_of_config(config);
}

MethodGuess method_of_name(const std::string& model) {
  std::filesystem::path path(model);
  if (!path.has_filename()) path = path.parent_path();
  const std::string method = method_in(path.filename().string());
  return {method.empty() ? "draft_model" : method, false};
}

}  // namespace foretoken
