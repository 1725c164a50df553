#include "hub/wanted_files.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "gguf/vocabulary/folder_tokenizer.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// How the files of a format are called.
struct WeightNames {
  const char* single;
  const char* index;
  const char* ending;
};

constexpr WeightNames kSafetensors = {kWeightsFile, kWeightsIndex, ".safetensors"};
constexpr WeightNames kTorchFiles = {"pytorch_model.bin", "pytorch_model.bin.index.json", ".bin"};
constexpr WeightNames kMedusaFile = {"medusa_lm_head.pt", "medusa_lm_head.pt.index.json", ".pt"};

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_text_file(const std::string& name) {
  static const std::set<std::string> names = {"config.json",
                                              "generation_config.json",
                                              "special_tokens_map.json",
                                              "added_tokens.json",
                                              "chat_template.jinja",
                                              "chat_template.json",
                                              "quantize_config.json",
                                              "quant_config.json",
                                              "hf_quant_config.json",
                                              "config_sentence_transformers.json",
                                              "modules.json",
                                              "sentence_bert_config.json",
                                              "1_Pooling/config.json"};
  return names.count(name) > 0 || (starts_with(name, "tokenizer") && ends_with(name, ".json") &&
                                   name.find('/') == std::string::npos);
}

// Of a module of sentence-transformers behind the model, as in "2_Dense" and "2_Dense_1024".
bool is_dense_module(const std::string& name) {
  const size_t at = name.find("_Dense");
  if (at == std::string::npos || name.find('/') == std::string::npos ||
      name.find_first_not_of("0123456789") != at)
    return false;
  const std::string file = name.substr(name.find('/') + 1);
  return file == "config.json" || file == "model.safetensors" || file == "pytorch_model.bin";
}

// A tokenizer's vocabulary in a form other than tokenizer.json.
bool is_vocabulary(const std::string& name) {
  return name.find('/') == std::string::npos && is_vocabulary_file(name);
}

// Templates beside the usual one, for tools for instance.
bool is_named_template(const std::string& name) {
  const std::string folder = "additional_chat_templates/";
  return starts_with(name, folder) && ends_with(name, ".jinja") &&
         name.find('/', folder.size()) == std::string::npos;
}

bool is_weights_file(const std::string& name, const WeightNames& format) {
  if (!ends_with(name, format.ending) || name.find('/') != std::string::npos) return false;
  if (std::string(format.ending) == ".pt") return name == format.single;
  if (std::string(format.ending) == ".bin") return starts_with(name, "pytorch_model");
  return !starts_with(name, "consolidated") && !starts_with(name, "adapter");
}

// One file if there is one, else the index, else every file of weights.
std::vector<HubFile> weights_of(const HubListing& listing, const WeightNames& format) {
  std::vector<HubFile> weights;
  for (const char* name : {format.single, format.index}) {
    for (const HubFile& file : listing.files) {
      if (weights.empty() && file.name == name) weights.push_back(file);
    }
  }
  if (!weights.empty()) return weights;
  for (const HubFile& file : listing.files) {
    if (is_weights_file(file.name, format)) weights.push_back(file);
  }
  return weights;
}

Status add_weights(const HubListing& listing, const std::string& repo,
                   std::vector<HubFile>* wanted) {
  std::vector<HubFile> weights = weights_of(listing, kSafetensors);
  if (weights.empty()) weights = weights_of(listing, kTorchFiles);
  if (weights.empty()) weights = weights_of(listing, kMedusaFile);
  if (weights.empty()) {
    return unsupported(repo +
                       " has no weights as *.safetensors or pytorch_model*.bin, and other formats "
                       "are not read; choose another repository or revision, or one of its GGUF "
                       "files as org/name:Q4_K_M");
  }
  wanted->insert(wanted->end(), weights.begin(), weights.end());
  return {};
}

}  // namespace

Result<std::vector<HubFile>> wanted_files(const HubListing& listing, bool weights,
                                          const std::string& repo) {
  std::vector<HubFile> wanted;
  std::set<std::string> seen;
  bool has_config = false, has_tokenizer = false, has_params = false;
  for (const HubFile& file : listing.files) {
    has_params = has_params || file.name == "params.json";
    has_tokenizer = has_tokenizer || file.name == "tokenizer.json";
  }
  for (const HubFile& file : listing.files) {
    const bool reads = is_text_file(file.name) || is_named_template(file.name) ||
                       is_dense_module(file.name) || (!has_tokenizer && is_vocabulary(file.name));
    if (!reads) continue;
    if (!seen.insert(file.name).second) continue;
    has_config = has_config || file.name == "config.json";
    wanted.push_back(file);
  }
  if (!has_config && has_params) {
    return unsupported(repo +
                       " has no config.json but params.json, as Mistral's and Meta's own layouts, "
                       "which are not fetched by name; fetch its files (hf download " +
                       repo + " --local-dir FOLDER) and give the folder: --model FOLDER");
  }
  if (!has_config) {
    return unsupported(repo +
                       " has no config.json, so it is no model in the format of "
                       "transformers; choose another repository");
  }
  if (weights) FT_RETURN_IF_ERROR(add_weights(listing, repo, &wanted));
  return wanted;
}

Result<std::vector<std::string>> index_shards(const IndexFile& index, const std::string& repo) {
  const auto broken = [&](const std::string& why) {
    return invalid_argument(index.name + " of " + repo + ": " + why +
                            "; choose another revision or fetch it again");
  };
  std::ifstream file(index.path, std::ios::binary);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return broken("it is no JSON object");
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object() || map->empty()) {
    return broken("'weight_map' is missing or empty");
  }
  std::set<std::string> names;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    const bool is_torch = index.name == kTorchFiles.index;
    if (!is_safe_path(name) || name.find('/') != std::string::npos ||
        !ends_with(name, is_torch ? ".bin" : ".safetensors")) {
      return broken("tensor '" + tensor + "' needs the name of a " +
                    (is_torch ? "*.bin" : "safetensors") + " file in the same folder, not " +
                    (shard.is_string() ? "'" + name + "'" : shard.type_name()));
    }
    names.insert(name);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::vector<HubFile>> find_shards(const IndexFile& index, const HubListing& listing,
                                         const std::string& repo) {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> names, index_shards(index, repo));
  std::vector<HubFile> shards, others;
  std::string missing;
  for (const std::string& name : names) {
    const auto found = std::find_if(listing.files.begin(), listing.files.end(),
                                    [&](const HubFile& file) { return file.name == name; });
    if (found != listing.files.end()) {
      shards.push_back(*found);
    } else if (missing.empty()) {
      missing = name;
    }
  }
  if (missing.empty()) return shards;
  // The index of other weights, which lies beside those that took their place.
  for (const HubFile& file : listing.files) {
    if (is_weights_file(file.name, index.name == kTorchFiles.index ? kTorchFiles : kSafetensors)) {
      others.push_back(file);
    }
  }
  if (shards.empty() && !others.empty()) return others;
  return not_found(repo + ": " + index.name + " names " + missing +
                   ", which the repository does not have; choose another revision");
}

bool is_weights_index(const std::string& name) {
  return name == kSafetensors.index || name == kTorchFiles.index;
}

std::string missing_file(const fs::path& folder, bool weights) {
  std::error_code ignored;
  const auto has = [&](const std::string& name) {
    return fs::is_regular_file(folder / name, ignored) && !fs::is_empty(folder / name, ignored);
  };
  if (!has("config.json")) return "config.json";
  if (!weights) return "";
  for (const WeightNames& format : {kSafetensors, kTorchFiles, kMedusaFile}) {
    if (has(format.single)) return "";
    std::vector<std::string> there;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (is_weights_file(name, format) && has(name)) there.push_back(name);
    }
    if (!has(format.index)) {
      if (!there.empty()) return "";
      continue;
    }
    const Result<std::vector<std::string>> shards = index_shards(folder / format.index, "");
    if (!shards.ok()) return format.index;
    const auto missing = std::find_if_not(shards.value().begin(), shards.value().end(), has);
    const bool is_stale =
        std::none_of(shards.value().begin(), shards.value().end(), has) && !there.empty();
    return missing == shards.value().end() || is_stale ? "" : *missing;
  }
  return kWeightsFile;
}

}  // namespace foretoken
