#include "engine/start/own_pooling.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, Pooling> kModes[] = {
    {"pooling_mode_cls_token", Pooling::kCls},
    {"pooling_mode_mean_tokens", Pooling::kMean},
    {"pooling_mode_lasttoken", Pooling::kLast},
};
// Of newer files, in one field.
constexpr std::pair<const char*, Pooling> kNames[] = {
    {"cls", Pooling::kCls}, {"mean", Pooling::kMean}, {"lasttoken", Pooling::kLast}};

// What a class that judges texts pools, where its config.json says it (ModernBERT).
std::optional<Pooling> classifier_pooling(const std::string& folder) {
  const fs::path file = fs::path(folder) / "config.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  const auto read = read_json_file(file.string());
  if (!read.ok() || !read.value().is_object()) return std::nullopt;
  const nlohmann::json& fields = read.value();
  const auto classes = fields.find("architectures");
  const auto named = fields.find("classifier_pooling");
  const bool judges = classes != fields.end() && classes->is_array() && !classes->empty() &&
                      (*classes)[0].is_string() &&
                      (*classes)[0].get<std::string>().ends_with("ForSequenceClassification");
  if (!judges || named == fields.end()) return std::nullopt;
  for (const auto& [name, pooling] : kNames) {
    if (*named == name) return pooling;
  }
  return std::nullopt;
}

}  // namespace

Pooling own_pooling(const std::string& folder, bool bidirectional) {
  if (const auto judged = classifier_pooling(folder)) return *judged;
  const Pooling usual = bidirectional ? Pooling::kCls : Pooling::kLast;
  const fs::path file = fs::path(folder) / "1_Pooling" / "config.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return usual;
  const auto read = read_json_file(file.string());
  if (!read.ok()) {
    FT_LOG(warn, "{}", read.status().message());
    return usual;
  }
  const nlohmann::json& fields = read.value();
  for (const auto& [name, pooling] : kModes) {
    if (fields.value(name, nlohmann::json()) == true) return pooling;
  }
  for (const auto& [name, pooling] : kNames) {
    if (fields.value("pooling_mode", nlohmann::json()) == name) return pooling;
  }
  FT_LOG(warn,
         "{}: states are pooled in a way that is not built; --pooling chooses last, mean or cls",
         file.string());
  return usual;
}

}  // namespace foretoken
