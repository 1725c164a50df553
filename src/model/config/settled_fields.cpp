#include "model/config/settled_fields.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "base/log.h"
#include "model/config/architecture.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/mlx_layouts.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kField = "tie_word_embeddings";

bool field_is(const Json& fields, bool wanted) {
  const auto found = fields.find(kField);
  return found != fields.end() && *found == wanted;
}

// The one with the shortest name, as modules and encoders may have their own; null: none.
const TensorView* shortest_name(const Checkpoint& files, std::string_view ending) {
  const TensorView* found = nullptr;
  size_t length = 0;
  for (const auto& [name, tensor] : files.tensors()) {
    if (!name.ends_with(ending) || (found != nullptr && name.size() >= length)) continue;
    found = tensor;
    length = name.size();
  }
  return found;
}

// Of matrices whose elements lie in the files as they are; others are taken for the same.
bool are_apart(const TensorView& head, const TensorView& table) {
  constexpr int64_t kRows = 64;
  if (head.data == nullptr || table.data == nullptr || head.dtype == FileDType::kOther)
    return false;
  if (head.dtype != table.dtype || head.shape != table.shape || head.shape.size() != 2)
    return false;
  const int64_t rows = head.shape[0];
  if (rows == 0 || head.num_bytes != table.num_bytes) return false;
  const int64_t row_bytes = head.num_bytes / rows;
  for (int64_t i = 0; i < std::min(kRows, rows); ++i) {
    const int64_t at = rows * i / std::min(kRows, rows) * row_bytes;
    if (std::memcmp(head.data + at, table.data + at, static_cast<size_t>(row_bytes)) != 0)
      return true;
  }
  return false;
}

std::optional<bool> has_output_matrix(const ModelFiles& model) {
  const Result<Checkpoint> files = Checkpoint::open(model);
  if (!files.ok()) return std::nullopt;
  return shortest_name(files.value(), "lm_head.weight") != nullptr;
}

std::optional<bool> are_sanitised_by_mlx(const ModelFiles& model, const char* sign) {
  const Result<Checkpoint> files = Checkpoint::open(model);
  if (!files.ok()) return std::nullopt;
  return is_sanitised_by_mlx(files.value().tensors(), sign);
}

// `is_denied`: a text_config says that the two are apart, the fields around it that they are one.
std::optional<bool> ties_head(const ModelFiles& model, bool is_tied, bool is_denied) {
  const Result<Checkpoint> files = Checkpoint::open(model);
  if (!files.ok()) return std::nullopt;
  const TensorView* head = shortest_name(files.value(), "lm_head.weight");
  if (head == nullptr) return is_denied ? std::optional(true) : std::nullopt;
  const TensorView* table = shortest_name(files.value(), "embed_tokens.weight");
  if (table == nullptr || head == table || !are_apart(*head, *table)) return std::nullopt;
  if (is_tied) {
    FT_LOG(
        warn,
        "{}: config.json ties the output matrix to the embedding, but the files have another one, "
        "'{}', which is used",
        model.text(), head->name);
  }
  return false;
}

// The class with an output matrix around a body that is a class of its own, as "Qwen2Model" and
// "Gemma3TextModel", or that judges texts, as "Qwen3ForSequenceClassification"; null: the name is
// no such one's, or that class is unknown.
const Architecture* class_around(std::string name) {
  if (find_architecture(name) != nullptr) return nullptr;
  for (const std::string_view ending :
       {"TextForSequenceClassification", "ForSequenceClassification", "ForRewardModel"}) {
    if (!name.ends_with(ending)) continue;
    const std::string base = name.substr(0, name.size() - ending.size());
    for (const char* whole : {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"}) {
      if (const Architecture* found = find_architecture(base + whole)) return found;
    }
  }
  for (const std::string_view ending : {"Model", "Text"}) {
    if (!name.ends_with(ending)) return nullptr;
    name.erase(name.size() - ending.size());
    const Architecture* found = find_architecture(name + "ForCausalLM");
    if (found != nullptr) return found;
  }
  return nullptr;
}

// A model is read as more than one ModelFiles.
void warn_once(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) FT_LOG(warn, "{}", text);
}

// Null: none that is known.
const Architecture* named_architecture(const Json& config) {
  const auto names = config.find("architectures");
  const bool is_named =
      names != config.end() && names->is_array() && names->size() == 1 && (*names)[0].is_string();
  return is_named ? find_architecture((*names)[0].get<std::string>()) : nullptr;
}

}  // namespace

Json with_whole_class(const ModelFiles& model, Json config) {
  const auto names = config.find("architectures");
  const bool is_named =
      names != config.end() && names->is_array() && names->size() == 1 && (*names)[0].is_string();
  const Architecture* whole = is_named ? class_around((*names)[0].get<std::string>()) : nullptr;
  if (whole == nullptr) return config;
  *names = Json::array({whole->name});
  if (model.is_gguf()) return config;  // which says itself what it ties
  const std::optional<bool> has_matrix =
      model.weights_fact(WeightsFact::kHasOutputMatrix, [&] { return has_output_matrix(model); });
  if (has_matrix.value_or(true)) return config;
  warn_once(model.text() +
            ": the files hold no output matrix, for which the embedding stands in; embeddings and "
            "scores are the model's, texts are not");
  const auto text = config.find("text_config");
  if (text != config.end() && text->is_object()) (*text)[kField] = true;
  config[kField] = true;
  return config;
}

Json with_settled_head(const ModelFiles& model, Json config) {
  if (model.is_gguf()) return config;
  const auto found = config.find("text_config");
  Json* text = found != config.end() && found->is_object() ? &*found : nullptr;
  const bool outer_ties = field_is(config, true);
  if (field_is(text != nullptr && text->contains(kField) ? *text : config, false) && !outer_ties) {
    return config;
  }
  const bool is_tied = outer_ties || (text != nullptr && field_is(*text, true));
  const bool is_denied = outer_ties && text != nullptr && field_is(*text, false);
  const std::optional<bool> ties = model.weights_fact(
      WeightsFact::kTiesHead, [&] { return ties_head(model, is_tied, is_denied); });
  if (!ties.has_value()) return config;
  if (text != nullptr) (*text)[kField] = *ties;
  if (text == nullptr || !*ties) config[kField] = *ties;
  return config;
}

Json with_mlx_weights(const ModelFiles& model, Json config) {
  if (model.is_gguf()) return config;
  const Architecture* architecture = named_architecture(config);
  if (architecture == nullptr || architecture->take_mlx == nullptr) return config;
  const std::optional<bool> is_sanitised = model.weights_fact(WeightsFact::kSanitisedByMlx, [&] {
    return are_sanitised_by_mlx(model, architecture->mlx_sign);
  });
  if (is_sanitised.value_or(false)) architecture->take_mlx(&config);
  return config;
}

}  // namespace foretoken
