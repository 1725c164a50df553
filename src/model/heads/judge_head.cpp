#include "model/heads/judge_head.h"

#include <string>

#include "gguf/model_texts.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

using After = RowLayers::After;
using Json = nlohmann::json;

// The names of matrices, the first of which the activation follows.
struct Form {
  const char* first;  // null: there is one matrix
  const char* last;
  After between;
  const char* norm = nullptr;  // behind the activation; null: there is none
};

constexpr Form kForms[] = {{"classifier.dense", "classifier.out_proj", After::kTanh},
                           {"pooler.dense", "classifier", After::kTanh},
                           {"pooler", "classifier", After::kTanh},
                           {"pre_classifier", "classifier", After::kRelu},
                           {"head.dense", "classifier", After::kGelu, "head.norm"},
                           {"score.0", "score.2", After::kRelu},
                           {nullptr, "classifier", After::kNothing},
                           {nullptr, "score", After::kNothing},
                           {nullptr, "v_head", After::kNothing}};

bool is_judge(const Json& config) {
  const auto names = config.find("architectures");
  if (names == config.end() || !names->is_array() || names->empty()) return false;
  if (!(*names)[0].is_string()) return false;
  const auto name = (*names)[0].get<std::string>();
  return name.ends_with("ForSequenceClassification") || name.ends_with("ForRewardModel");
}

// What follows a form's first matrix. ELECTRA has the names of RoBERTa's head, DeBERTa those of
// BERT's, and its config.json says the activation.
Result<After> activation_of(const ModelFiles& model, const Form& form, const Json& config) {
  const Json type = config.value("model_type", Json());
  if (type == "electra") return After::kGelu;
  if (type != "deberta-v2") return form.between;
  const Json name = config.value("pooler_hidden_act", Json("gelu"));
  if (name == "gelu") return After::kGelu;
  if (name == "tanh") return After::kTanh;
  return unsupported(model.text() + ": pooler_hidden_act " + name.dump().substr(0, 80) +
                     " is not supported; use a model whose pooler has gelu or tanh");
}

// Of ModernBERT, whose config.json says the activation.
Status check_activation(const ModelFiles& model, const Json& config) {
  const auto name = config.find("classifier_activation");
  if (name == config.end() || *name == "gelu") return {};
  return unsupported(model.text() + ": classifier_activation " + name->dump().substr(0, 80) +
                     " is not supported; use a model whose classifier has gelu");
}

Result<RowLayers> load_form(const Checkpoint& files, const Form& form, const Json& config,
                            After between) {
  RowLayers layers;
  if (form.first != nullptr) FT_RETURN_IF_ERROR(layers.add(files, form.first, between));
  if (form.norm != nullptr) {
    const auto eps = config.find("norm_eps");
    const bool is_number = eps != config.end() && eps->is_number();
    FT_RETURN_IF_ERROR(layers.add_norm(files, form.norm, is_number ? eps->get<float>() : 1e-5F));
  }
  FT_RETURN_IF_ERROR(layers.add(files, form.last, After::kNothing));
  return layers;
}

}  // namespace

Result<std::optional<JudgeHead>> JudgeHead::load(const ModelFiles& model, int32_t hidden_size) {
  if (!has_model_text(model, "config.json")) return std::optional<JudgeHead>();
  FT_ASSIGN_OR_RETURN(const Json config, read_config_json(model));
  if (!is_judge(config)) return std::optional<JudgeHead>();
  FT_ASSIGN_OR_RETURN(const Checkpoint files, Checkpoint::open(model));
  const auto has = [&](const char* name) {
    return name == nullptr || files.find(std::string(name) + ".weight").ok();
  };
  for (const Form& form : kForms) {
    if (!has(form.first) || !has(form.last)) continue;
    if (form.norm != nullptr) FT_RETURN_IF_ERROR(check_activation(model, config));
    FT_ASSIGN_OR_RETURN(const After between, activation_of(model, form, config));
    FT_ASSIGN_OR_RETURN(RowLayers layers, load_form(files, form, config, between));
    if (layers.inputs() == hidden_size) return std::optional(JudgeHead(std::move(layers)));
  }
  return not_found(model.text() +
                   " lacks the matrices that judge a text (classifier.weight or score.weight); "
                   "the weights do not belong to its config.json, or a shard is missing");
}

}  // namespace foretoken
