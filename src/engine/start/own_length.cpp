#include "engine/start/own_length.h"

#include <filesystem>

#include "base/log.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

constexpr const char* kFiles[] = {
    "sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
    "sentence_camembert_config.json", "sentence_xlm-roberta_config.json"};

}  // namespace

int own_max_len(const ModelFiles& model) {
  if (model.is_gguf()) return 0;
  for (const char* name : kFiles) {
    const std::filesystem::path file = model.path() / name;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    const auto read = read_json_file(file.string());
    if (!read.ok() || !read.value().is_object()) {
      FT_LOG(warn, "{}: no JSON object; texts may be as long as the model allows", file.string());
      return 0;
    }
    const nlohmann::json length = read.value().value("max_seq_length", nlohmann::json());
    constexpr int kMinLength = 2, kMaxLength = 1 << 24;
    const bool is_length =
        length.is_number_integer() && length >= kMinLength && length <= kMaxLength;
    return is_length ? length.get<int>() : 0;
  }
  return 0;
}

}  // namespace foretoken
