#include "engine/start/own_pooling.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "gguf/container/gguf_file.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

struct PoolingMode {
  const char* flag;  // a field of its own
  const char* name;  // of newer files, in the field "pooling_mode"
  Pooling pooling;
};

constexpr PoolingMode kModes[] = {
    {"pooling_mode_cls_token", "cls", Pooling::kCls},
    {"pooling_mode_mean_tokens", "mean", Pooling::kMean},
    {"pooling_mode_max_tokens", "max", Pooling::kMax},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::kMeanSqrtLen},
    {"pooling_mode_weightedmean_tokens", "weightedmean", Pooling::kWeightedMean},
    {"pooling_mode_lasttoken", "lasttoken", Pooling::kLast},
};

// The folder of the module, as modules.json lists them.
fs::path pooling_file(const fs::path& folder) {
  const auto modules = read_json_list((folder / "modules.json").string());
  if (modules.ok()) {
    for (const nlohmann::json& module : modules.value()) {
      const auto field = [&](const char* name) {
        const bool is_there = module.is_object() && module.contains(name);
        return is_there && module[name].is_string() ? module[name].get<std::string>() : "";
      };
      if (field("type").ends_with("Pooling")) return folder / field("path") / "config.json";
    }
  }
  return folder / "1_Pooling" / "config.json";
}

std::vector<Pooling> wanted_modes(const nlohmann::json& fields) {
  std::vector<Pooling> wanted;
  for (const PoolingMode& mode : kModes) {
    if (fields.value(mode.flag, nlohmann::json()) == true) wanted.push_back(mode.pooling);
  }
  if (!wanted.empty()) return wanted;
  const nlohmann::json name = fields.value("pooling_mode", nlohmann::json());
  for (const PoolingMode& mode : kModes) {
    if (name == mode.name) wanted.push_back(mode.pooling);
  }
  return wanted;
}

// What a class that judges texts pools, where its config.json says it (ModernBERT).
std::optional<Pooling> classifier_pooling(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  const auto read = read_json_file(file.string());
  if (!read.ok() || !read.value().is_object()) return std::nullopt;
  const nlohmann::json& fields = read.value();
  const auto classes = fields.find("architectures");
  const bool judges = classes != fields.end() && classes->is_array() && !classes->empty() &&
                      (*classes)[0].is_string() &&
                      (*classes)[0].get<std::string>().ends_with("ForSequenceClassification");
  const nlohmann::json name = fields.value("classifier_pooling", nlohmann::json());
  for (const PoolingMode& mode : kModes) {
    if (judges && name == mode.name) return mode.pooling;
  }
  return std::nullopt;
}

std::optional<Pooling> pooling_of_folder(const fs::path& folder) {
  if (const auto judged = classifier_pooling(folder)) return judged;
  const fs::path file = pooling_file(folder);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  const auto read = read_json_file(file.string());
  if (!read.ok() || !read.value().is_object()) {
    FT_LOG(warn, "{}",
           read.ok() ? file.string() + " is no JSON object; download it again"
                     : read.status().message());
    return std::nullopt;
  }
  const std::vector<Pooling> wanted = wanted_modes(read.value());
  if (wanted.size() == 1) {
    if (read.value().value("include_prompt", nlohmann::json()) == false) {
      FT_LOG(warn, "{}: 'include_prompt' is false, but the states of prompts are pooled, too",
             file.string());
    }
    return wanted.front();
  }
  FT_LOG(warn, "{}: states are pooled in {}; --pooling chooses last, mean or cls", file.string(),
         wanted.empty() ? "a way that is not built" : "several ways at once, which is not built");
  return std::nullopt;
}

// As llama.cpp numbers them. What judges texts goes by a key of its own.
std::optional<Pooling> pooling_of_file(const ModelFiles& model) {
  const auto file = model.gguf();
  if (!file.ok()) return std::nullopt;
  const auto name = file.value()->text("general.architecture");
  if (!name.ok() || !name.value()) return std::nullopt;
  const bool judges = file.value()->tensors().contains("cls.output.weight");
  const auto type =
      file.value()->integer(*name.value() + (judges ? ".classifier" : "") + ".pooling_type");
  if (!type.ok()) return std::nullopt;
  // Files of ModernBERT from before that key are of judges that go by the mean.
  const bool is_old = judges && name.value() == "modern-bert";
  switch (type.value().value_or(is_old ? 1 : 0)) {
    case 1:
      return Pooling::kMean;
    case 2:
      return Pooling::kCls;
    case 3:
      return Pooling::kLast;
    default:
      return std::nullopt;
  }
}

}  // namespace

Pooling own_pooling(const ModelFiles& model, bool bidirectional) {
  const Pooling usual = bidirectional ? Pooling::kCls : Pooling::kLast;
  return (model.is_gguf() ? pooling_of_file(model) : pooling_of_folder(model.path()))
      .value_or(usual);
}

}  // namespace foretoken
