#include "hub/wanted_files.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace foretoken {
namespace {

namespace fs = std::filesystem;

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_text_file(const std::string& name) {
  static const std::set<std::string> names = {"config.json", "generation_config.json",
                                              "special_tokens_map.json", "chat_template.jinja",
                                              "chat_template.json"};
  return names.count(name) > 0 || (starts_with(name, "tokenizer") && ends_with(name, ".json") &&
                                   name.find('/') == std::string::npos);
}

// Templates beside the usual one, for tools for instance.
bool is_named_template(const std::string& name) {
  const std::string folder = "additional_chat_templates/";
  return starts_with(name, folder) && ends_with(name, ".jinja") &&
         name.find('/', folder.size()) == std::string::npos;
}

bool is_weights_file(const std::string& name) {
  return ends_with(name, ".safetensors") && name.find('/') == std::string::npos &&
         !starts_with(name, "consolidated") && !starts_with(name, "adapter");
}

// One file if there is one, else the index, else every file of weights.
Status add_weights(const HubListing& listing, const std::string& repo,
                   std::vector<HubFile>* wanted) {
  std::vector<HubFile> weights;
  for (const char* name : {kWeightsFile, kWeightsIndex}) {
    for (const HubFile& file : listing.files) {
      if (weights.empty() && file.name == name) weights.push_back(file);
    }
  }
  if (weights.empty()) {
    for (const HubFile& file : listing.files) {
      if (is_weights_file(file.name)) weights.push_back(file);
    }
  }
  if (weights.empty()) {
    return unsupported(repo +
                       " has no weights as safetensors, and other formats (.bin, .pth) are not "
                       "read; choose a repository or revision with *.safetensors, or one of its "
                       "GGUF files as org/name:Q4_K_M");
  }
  wanted->insert(wanted->end(), weights.begin(), weights.end());
  return {};
}

}  // namespace

Result<std::vector<HubFile>> wanted_files(const HubListing& listing, bool weights,
                                          const std::string& repo) {
  std::vector<HubFile> wanted;
  std::set<std::string> seen;
  bool has_config = false;
  for (const HubFile& file : listing.files) {
    if (!is_text_file(file.name) && !is_named_template(file.name)) continue;
    if (!seen.insert(file.name).second) continue;
    has_config = has_config || file.name == "config.json";
    wanted.push_back(file);
  }
  if (!has_config) {
    return unsupported(repo +
                       " has no config.json, so it is no model in the format of "
                       "transformers; choose another repository");
  }
  if (weights) FT_RETURN_IF_ERROR(add_weights(listing, repo, &wanted));
  return wanted;
}

Result<std::vector<std::string>> index_shards(const fs::path& index, const std::string& repo) {
  const auto broken = [&repo](const std::string& why) {
    return invalid_argument(std::string(kWeightsIndex) + " of " + repo + ": " + why +
                            "; choose another revision or fetch it again");
  };
  std::ifstream file(index, std::ios::binary);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return broken("it is no JSON object");
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object() || map->empty()) {
    return broken("'weight_map' is missing or empty");
  }
  std::set<std::string> names;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (!is_safe_path(name) || name.find('/') != std::string::npos ||
        !ends_with(name, ".safetensors")) {
      return broken("tensor '" + tensor +
                    "' needs the name of a safetensors file in the same "
                    "folder, not " +
                    (shard.is_string() ? "'" + name + "'" : shard.type_name()));
    }
    names.insert(name);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::vector<HubFile>> find_shards(const fs::path& index, const HubListing& listing,
                                         const std::string& repo) {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> names, index_shards(index, repo));
  std::vector<HubFile> shards;
  for (const std::string& name : names) {
    const auto found = std::find_if(listing.files.begin(), listing.files.end(),
                                    [&](const HubFile& file) { return file.name == name; });
    if (found == listing.files.end()) {
      return not_found(repo + ": " + kWeightsIndex + " names " + name +
                       ", which the repository does not have; choose another revision");
    }
    shards.push_back(*found);
  }
  return shards;
}

std::string missing_file(const fs::path& folder, bool weights) {
  std::error_code ignored;
  const auto has = [&](const std::string& name) {
    return fs::is_regular_file(folder / name, ignored) && !fs::is_empty(folder / name, ignored);
  };
  if (!has("config.json")) return "config.json";
  if (!weights || has(kWeightsFile)) return "";
  if (has(kWeightsIndex)) {
    const Result<std::vector<std::string>> shards = index_shards(folder / kWeightsIndex, "");
    if (!shards.ok()) return kWeightsIndex;
    for (const std::string& shard : shards.value()) {
      if (!has(shard)) return shard;
    }
    return "";
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_weights_file(name) && has(name)) return "";
  }
  return kWeightsFile;
}

}  // namespace foretoken
