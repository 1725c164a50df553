#include "engine/start/own_pooling.h"

#include <filesystem>
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

}  // namespace

Pooling own_pooling(const std::string& folder, bool bidirectional) {
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
