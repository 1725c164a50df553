#include "model/files/weight_files.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "gguf/meta_params.h"
#include "gguf/mistral_params.h"
#include "model/files/containers/json_file.h"

namespace foretoken {

namespace fs = std::filesystem;

namespace {

// A format of weights: how its files are called.
struct WeightFormat {
  const char* single;
  const char* index;
  std::string_view ending;
};

constexpr WeightFormat kWeightFormats[] = {
    {"model.safetensors", "model.safetensors.index.json", ".safetensors"},
    {"pytorch_model.bin", "pytorch_model.bin.index.json", ".bin"},
    {"medusa_lm_head.pt", "medusa_lm_head.pt.index.json", ".pt"},
};

// Mistral's own layout.
constexpr WeightFormat kConsolidated = {"consolidated.safetensors",
                                        "consolidated.safetensors.index.json", ".safetensors"};

constexpr const char* kUnfinished = "a download that was not finished; fetch the weights again";

// Files with weights in formats that are not read, by ending, and what to say of them.
constexpr std::pair<std::string_view, const char*> kOtherFormats[] = {
    {".incomplete", kUnfinished},
    {".crdownload", kUnfinished},
    {".part", kUnfinished},
    {".download", kUnfinished},
    {".aria2", kUnfinished},
    {"?download=true", "a part of its address is in the name; rename it to end in .safetensors"},
    {".gguf", "a GGUF file is named by its own path: --model FOLDER/FILE.gguf"},
    {".h5", "TensorFlow's weights are not read; use a revision with *.safetensors"},
    {".msgpack", "Flax's weights are not read; use a revision with *.safetensors"},
    {".npz", "NumPy's archives are not read; use a revision with *.safetensors"},
    {".engine",
     "TensorRT's engines are built for one GPU and are not read; use the model that it was built "
     "from"},
    {".nemo", "NeMo's archives are not read; use the model in the layout of transformers"},
    {"openvino_model.xml",
     "OpenVINO's models are not read; use the model that it was converted from"},
    {".mlpackage", "Core ML's packages are not read; use the model that they were made from"},
    {".tflite", "LiteRT's models are not read; use the model that they were made from"},
    {".pte", "ExecuTorch's programs are not read; use the model that they were made from"},
    {".onnx", "ONNX graphs are not read; use the model that they were made from"},
    {".pth",
     "checkpoints in their makers' own layout are not read; use a repository with *.safetensors "
     "in the layout of transformers"},
    {".pt",
     "checkpoints in their makers' own layout are not read; use a repository with *.safetensors "
     "in the layout of transformers"},
};

bool is_weight_file(const std::string& name, const WeightFormat& format) {
  if (!name.ends_with(format.ending)) return false;
  // Adapters, what training leaves, and Mistral's own layout.
  for (const char* other : {"adapter", "optimizer", "scheduler", "training_args", "random_states",
                            "rng_state", "consolidated", "scaler"}) {
    if (name.starts_with(other)) return false;
  }
  if (format.ending == ".pt") return name == format.single;
  return format.ending != ".bin" || name.starts_with("pytorch_model") || name.starts_with("model");
}

std::vector<std::string> weight_names(const fs::path& folder, const WeightFormat& format) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file(ignored) && is_weight_file(name, format)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

WeightFiles in_folder(const fs::path& folder, const std::vector<std::string>& names) {
  WeightFiles found;
  for (const std::string& name : names) found.files.push_back(folder / name);
  return found;
}

// The numbers of shards that one set has, by the set's name and size.
using ShardSets = std::map<std::pair<std::string, int>, std::map<int, std::string>>;

ShardSets shard_sets(const std::vector<std::string>& names) {
  static const std::regex pattern(R"((.*?)-?(\d{1,6})-of-(\d{1,6})\.(safetensors|bin))");
  ShardSets sets;
  for (const std::string& name : names) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    sets[{match[1].str(), std::stoi(match[3].str())}].emplace(std::stoi(match[2].str()), name);
  }
  return sets;
}

bool has_whole_set(const std::vector<std::string>& names) {
  const ShardSets sets = shard_sets(names);
  return std::ranges::any_of(
      sets, [](const auto& set) { return std::ssize(set.second) >= set.first.second; });
}

// Weights without an index: a whole set of shards where there is one, else all files.
Result<WeightFiles> unindexed(const fs::path& folder, const std::vector<std::string>& names) {
  const ShardSets sets = shard_sets(names);
  std::string missing;
  for (const auto& [key, shards] : sets) {
    const auto& [name, count] = key;
    if (std::ssize(shards) < count) {
      int number = 1;
      while (shards.contains(number)) ++number;
      missing = "shard " + std::to_string(number) + " of " + std::to_string(count) +
                " of the set " + shards.begin()->second;
      continue;
    }
    std::vector<std::string> files;
    for (const auto& [number, file] : shards) files.push_back(file);
    return in_folder(folder, files);
  }
  if (sets.empty()) return in_folder(folder, names);
  return not_found(missing + " is not in " + folder.string() + "; fetch the weights again");
}

Result<std::set<std::string>> indexed_names(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const nlohmann::json index, read_json_file(path));
  if (!index.contains("weight_map") || !index["weight_map"].is_object() ||
      index["weight_map"].empty()) {
    return invalid_argument(path + ": 'weight_map' is missing or empty; fetch it again");
  }
  std::set<std::string> shards;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || shard.get<std::string>().empty() ||
        fs::path(shard.get<std::string>()).filename() != shard.get<std::string>()) {
      return invalid_argument(path + ": tensor '" + name + "' needs the name of a file in " +
                              "the same folder, not " + shard.dump());
    }
    shards.insert(shard.get<std::string>());
  }
  return shards;
}

// The shards of an index, or what is there in place of them.
Result<WeightFiles> indexed(const fs::path& folder, const WeightFormat& format,
                            const std::vector<std::string>& names) {
  const std::string path = (folder / format.index).string();
  FT_ASSIGN_OR_RETURN(const std::set<std::string> shards, indexed_names(path));
  std::error_code ignored;
  std::string missing;
  std::set<std::string> there;
  for (const std::string& shard : shards) {
    if (fs::exists(folder / shard, ignored)) {
      there.insert(shard);
    } else if (missing.empty()) {
      missing = shard;
    }
  }
  const bool is_stale = there.empty() ? !names.empty() : has_whole_set(names);
  if (!missing.empty() && is_stale) {
    FT_LOG(warn, "{} names {} files that are not there; the weights are taken from what is", path,
           std::ssize(shards) - std::ssize(there));
    return unindexed(folder, names);
  }
  if (!missing.empty()) {
    return not_found((folder / missing).string() + " is missing, which " + format.index +
                     " names; fetch the weights again");
  }
  WeightFiles found = in_folder(folder, {shards.begin(), shards.end()});
  found.index = path;
  for (const std::string& name : names) {
    if (!shards.contains(name)) found.others.push_back(folder / name);
  }
  return found;
}

// Of Meta's own layout, whose files are numbered from 0 on.
WeightFiles meta_files(const fs::path& folder) {
  WeightFiles found;
  std::error_code ignored;
  for (int number = 0;; ++number) {
    const std::string digits = (number < 10 ? "0" : "") + std::to_string(number);
    const fs::path file = folder / ("consolidated." + digits + ".pth");
    if (!fs::exists(file, ignored)) return found;
    found.files.push_back(file);
  }
}

// Of a folder whose params.json stands for its configuration: files under other names hold the same
// weights in the order of transformers, which those of makers are not read by.
Result<WeightFiles> makers_files(const fs::path& folder) {
  if (has_meta_params(folder)) return meta_files(folder);
  std::error_code ignored;
  if (fs::exists(folder / kConsolidated.single, ignored)) {
    return in_folder(folder, {kConsolidated.single});
  }
  return indexed(folder, kConsolidated, {});
}

Status no_weights(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "consolidated.safetensors", ignored) ||
      fs::exists(folder / "consolidated.safetensors.index.json", ignored)) {
    return unsupported("the weights in " + folder.string() +
                       " are in Mistral's own layout (consolidated.safetensors), which is not "
                       "read; fetch the model*.safetensors of the same repository");
  }
  if (fs::exists(folder / "adapter_config.json", ignored)) {
    return unsupported(folder.string() +
                       " is a LoRA adapter and no model; give the model that it belongs to");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    for (const auto& [ending, remedy] : kOtherFormats) {
      if (!name.ends_with(ending)) continue;
      return unsupported("of weights " + folder.string() + " has only " + name + ": " + remedy);
    }
  }
  return not_found("no model.safetensors and no model.safetensors.index.json in " +
                   folder.string() +
                   "; fetch the weights or save them as safetensors, or use --load-format dummy");
}

}  // namespace

Result<WeightFiles> find_weight_files(const fs::path& folder) {
  if (has_mistral_params(folder) || has_meta_params(folder)) return makers_files(folder);
  std::error_code ignored;
  for (const WeightFormat& format : kWeightFormats) {
    if (fs::exists(folder / format.single, ignored)) return in_folder(folder, {format.single});
    const std::vector<std::string> names = weight_names(folder, format);
    if (fs::exists(folder / format.index, ignored)) {
      // An index alone says nothing where the weights are there in the other format.
      const bool alone = names.empty() && &format == &kWeightFormats[0] &&
                         !weight_names(folder, kWeightFormats[1]).empty();
      if (!alone) return indexed(folder, format, names);
    }
    if (!names.empty()) return unindexed(folder, names);
  }
  return no_weights(folder);
}

}  // namespace foretoken
