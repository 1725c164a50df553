#include "model/heads/judge_labels.h"

#include <nlohmann/json.hpp>

#include "gguf/container/gguf_file.h"
#include "model/files/forms/quantization.h"

namespace foretoken {
namespace {

std::string text_field(const nlohmann::json& object, const std::string& name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

JudgeLabels judge_labels(const ModelFiles& model, int num_labels) {
  JudgeLabels labels;
  const auto config = read_config_json(model);
  const nlohmann::json fields =
      config.ok() && config.value().is_object() ? config.value() : nlohmann::json::object();
  labels.problem_type = text_field(fields, "problem_type");
  if (const auto file = model.is_gguf() ? model.gguf() : not_found(""); file.ok()) {
    const auto pair = file.value()->text("tokenizer.chat_template.rerank");
    labels.pair_template = pair.ok() ? pair.value().value_or("") : "";
  }
  const nlohmann::json names = fields.value("id2label", nlohmann::json());
  for (int i = 0; i < num_labels; ++i) {
    const std::string name = names.is_object() ? text_field(names, std::to_string(i)) : "";
    labels.names.push_back(name.empty() ? "LABEL_" + std::to_string(i) : name);
  }
  return labels;
}

}  // namespace foretoken
