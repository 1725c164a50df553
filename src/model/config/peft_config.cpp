#include "model/config/peft_config.h"

#include <algorithm>
#include <boost/regex.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kLongestPattern = 4096;
constexpr double kLargestRank = 1 << 20;

bool is_set(const json& config, const char* field) {
  const auto found = config.find(field);
  if (found == config.end() || found->is_null()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return !(found->is_structured() || found->is_string()) || !found->empty();
}

// What an adapter may not have, and what it would mean.
struct RefusedPart {
  const char* field;
  const char* why;
  bool merges = false;  // PEFT can add it to the model
};
constexpr RefusedPart kRefusedParts[] = {
    {"use_qalora", "QALoRA pools inputs; train the adapter without it"},
    {"lora_bias", "biases of adapters are not applied; train with lora_bias false"},
    {"target_parameters", "adapters of bare parameters (experts) are not applied", true},
    {"layer_replication", "it makes another model with more layers; train the adapter without it"},
    {"use_bdlora", "block-diagonal adapters are not applied; train the adapter without it"},
    {"kasa_config", "KaSA changes the model's own matrices; train the adapter without it"},
    {"arrow_config", "a router among adapters is not applied; load one of the adapters alone"},
};

Status refused_part(const json& config, const std::string& where) {
  const std::string type = config.value("peft_type", json("LORA")).is_string()
                               ? config.value("peft_type", std::string("LORA"))
                               : std::string("?");
  if (type != "LORA") {
    return unsupported(where + ": peft_type is '" + type +
                       "'; only LORA adapters can be loaded: PEFT's save_as_lora() writes most "
                       "others as one, or " +
                       kMergeAdapter);
  }
  for (const RefusedPart& part : kRefusedParts) {
    if (is_set(config, part.field)) {
      return unsupported(where + ": " + part.field + " is set: " + part.why +
                         (part.merges ? std::string("; ") + kMergeAdapter : ""));
    }
  }
  const auto bias = config.find("bias");
  if (bias != config.end() && !bias->is_null() && *bias != "none") {
    return unsupported(where + ": bias is " + bias->dump() + ": trained biases are not applied; " +
                       kMergeAdapter);
  }
  const auto init = config.find("init_lora_weights");
  if (init == config.end() || !init->is_string()) return {};
  const auto name = init->get<std::string>();
  for (const char* changes : {"pissa", "olora", "corda", "loftq", "lora_ga"}) {
    if (!name.starts_with(changes)) continue;
    return unsupported(where + ": init_lora_weights is '" + name +
                       "', which changes the model's own matrices; save the adapter converted to a "
                       "plain one (path_initial_model_for_weight_conversion)");
  }
  return {};
}

// The whole of `text`, as Python's re.fullmatch; matching is bounded.
Result<bool> matches_whole(const std::string& pattern, const std::string& text,
                           boost::smatch* groups, const std::string& where) {
  try {
    const boost::regex expression(pattern, boost::regex::perl);
    return boost::regex_match(text, *groups, expression);
  } catch (const std::exception&) {
    return invalid_argument(where + ": '" + pattern +
                            "' is no regular expression that can be matched; correct it");
  }
}

bool is_rank(double value) {
  return value >= 1 && value <= kLargestRank && value == std::floor(value);
}

Status wrong_type(const std::string& where, const char* field, const char* wanted) {
  return invalid_argument(where + ": " + field + " must be " + wanted);
}

Result<std::vector<int32_t>> read_ids(const json& list, const std::string& where,
                                      const char* field) {
  std::vector<int32_t> ids;
  for (const json& id : list) {
    const bool fits = list.is_array() && id.is_number_integer() && id.get<int64_t>() >= 0 &&
                      id.get<int64_t>() <= std::numeric_limits<int32_t>::max();
    if (!fits) return wrong_type(where, field, "token ids");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

bool ends_with_module(const std::string& module, const std::string& name) {
  return module == name || module.ends_with("." + name);
}

}  // namespace

Result<PeftConfig> PeftConfig::parse(const json& config, const std::string& where) {
  PeftConfig out;
  out.where_ = where;
  FT_RETURN_IF_ERROR(refused_part(config, where));
  FT_RETURN_IF_ERROR(out.read_numbers(config));
  FT_RETURN_IF_ERROR(out.read_modules(config, "target_modules", &out.target_modules_));
  FT_RETURN_IF_ERROR(out.read_modules(config, "exclude_modules", &out.exclude_modules_));
  FT_RETURN_IF_ERROR(out.read_modules(config, "modules_to_save", &out.modules_to_save_));
  FT_RETURN_IF_ERROR(out.read_pattern(config, "rank_pattern", &out.rank_pattern_));
  FT_RETURN_IF_ERROR(out.read_pattern(config, "alpha_pattern", &out.alpha_pattern_));
  FT_RETURN_IF_ERROR(out.read_layers(config));
  FT_RETURN_IF_ERROR(out.read_tokens(config));
  return out;
}

Status PeftConfig::read_numbers(const json& config) {
  const auto number = [&](const char* field, double* out) -> Status {
    const auto found = config.find(field);
    if (found == config.end() || found->is_null()) return {};
    if (!found->is_number()) return wrong_type(where_, field, "a number");
    *out = found->get<double>();
    return {};
  };
  double rank = rank_;
  FT_RETURN_IF_ERROR(number("r", &rank));
  FT_RETURN_IF_ERROR(number("lora_alpha", &alpha_));
  if (!is_rank(rank)) return wrong_type(where_, "r", "a whole number from 1 on");
  rank_ = static_cast<int32_t>(rank);
  if (!std::isfinite(alpha_)) return wrong_type(where_, "lora_alpha", "a finite number");
  rank_stabilized_ = is_set(config, "use_rslora");
  ties_head_ = is_set(config, "ensure_weight_tying");
  uses_dora_ = is_set(config, "use_dora");
  transposes_ = is_set(config, "fan_in_fan_out");
  return {};
}

Status PeftConfig::read_modules(const json& config, const char* field, Modules* out) const {
  const auto found = config.find(field);
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) {
    *out = found->get<std::string>();
    if (std::get<std::string>(*out).size() <= kLongestPattern) return {};
    return wrong_type(where_, field, "shorter");
  }
  std::vector<std::string> names;
  for (const json& name : *found) {
    if (!found->is_array() || !name.is_string()) {
      return wrong_type(where_, field, "a text or a list of texts");
    }
    names.push_back(name.get<std::string>());
  }
  *out = std::move(names);
  return {};
}

Status PeftConfig::read_pattern(const json& config, const char* field, Pattern* out) const {
  const auto found = config.find(field);
  if (found == config.end() || found->is_null()) return {};
  if (!found->is_object()) return wrong_type(where_, field, "an object");
  for (const auto& [pattern, value] : found->items()) {
    if (!value.is_number() || pattern.size() > kLongestPattern) {
      return wrong_type(where_, field, "an object of numbers");
    }
    out->emplace_back(pattern, value.get<double>());
  }
  return {};
}

Status PeftConfig::read_layers(const json& config) {
  const auto layers = config.find("layers_to_transform");
  if (layers == config.end() || layers->is_null()) return {};
  const json list = layers->is_array() ? *layers : json::array({*layers});
  for (const json& layer : list) {
    if (!layer.is_number_integer()) {
      return wrong_type(where_, "layers_to_transform", "whole numbers");
    }
    layers_.push_back(layer.get<int64_t>());
  }
  Modules patterns;
  FT_RETURN_IF_ERROR(read_modules(config, "layers_pattern", &patterns));
  if (const auto* one = std::get_if<std::string>(&patterns)) layers_pattern_ = {*one};
  if (const auto* all = std::get_if<std::vector<std::string>>(&patterns)) layers_pattern_ = *all;
  return {};
}

// Of the embedding alone where they are a list.
Status PeftConfig::read_tokens(const json& config) {
  const auto invocation = config.find("alora_invocation_tokens");
  if (invocation != config.end() && !invocation->is_null()) {
    FT_ASSIGN_OR_RETURN(invocation_, read_ids(*invocation, where_, "alora_invocation_tokens"));
    if (invocation_.empty()) return wrong_type(where_, "alora_invocation_tokens", "token ids");
  }
  constexpr const char* kField = "trainable_token_indices";
  const auto tokens = config.find(kField);
  if (tokens == config.end() || tokens->is_null()) return {};
  if (!tokens->is_object()) {
    FT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, read_ids(*tokens, where_, kField));
    if (!ids.empty()) trained_tokens_.emplace_back("", std::move(ids));
    return {};
  }
  for (const auto& [module, list] : tokens->items()) {
    FT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, read_ids(list, where_, kField));
    trained_tokens_.emplace_back(module, std::move(ids));
  }
  return {};
}

const std::vector<int32_t>* PeftConfig::trained_tokens(const std::string& module) const {
  const auto found = std::ranges::find_if(
      trained_tokens_, [&](const auto& entry) { return ends_with_module(module, entry.first); });
  if (found != trained_tokens_.end()) return &found->second;
  // PEFT writes rows of an output matrix that it does not name where that is tied to the embedding.
  const bool is_other = !trained_tokens_.empty() && trained_tokens_.front().first.empty();
  const bool is_tied = ends_with_module(module, "lm_head") && trained_tokens_.size() == 1;
  return is_other || is_tied ? &trained_tokens_.front().second : nullptr;
}

std::vector<std::string> PeftConfig::token_modules() const {
  std::vector<std::string> names;
  for (const auto& [module, ids] : trained_tokens_) {
    if (!module.empty() && !ids.empty()) names.push_back(module);
  }
  return names;
}

std::vector<std::string> PeftConfig::saved_modules() const {
  const auto* names = std::get_if<std::vector<std::string>>(&modules_to_save_);
  return names == nullptr ? std::vector<std::string>() : *names;
}

Result<bool> PeftConfig::targets(const std::string& module) const {
  FT_ASSIGN_OR_RETURN(const bool excluded, matches(exclude_modules_, module));
  if (excluded) return false;
  // A file that names none means those that it holds.
  if (std::holds_alternative<std::monostate>(target_modules_)) return is_in_layers(module);
  // Beside an adapter of the embedding there is one of the head that is tied to it.
  if (ties_head_ && (module == "lm_head" || module.ends_with(".lm_head"))) return true;
  const auto* pattern = std::get_if<std::string>(&target_modules_);
  if (pattern != nullptr && *pattern == "all-linear") return true;
  FT_ASSIGN_OR_RETURN(const bool named, matches(target_modules_, module));
  if (!named || pattern != nullptr) return named;
  return is_in_layers(module);
}

Result<bool> PeftConfig::matches(const Modules& modules, const std::string& module) const {
  if (const auto* pattern = std::get_if<std::string>(&modules)) {
    boost::smatch groups;
    return matches_whole(*pattern, module, &groups, where_);
  }
  const auto* names = std::get_if<std::vector<std::string>>(&modules);
  if (names == nullptr) return false;
  return std::ranges::any_of(
      *names, [&](const std::string& name) { return ends_with_module(module, name); });
}

// The number behind the last name of `layers_pattern`, or behind the last name at all.
Result<bool> PeftConfig::is_in_layers(const std::string& module) const {
  if (layers_.empty()) return true;
  std::vector<std::string> patterns = layers_pattern_;
  if (patterns.empty()) patterns.emplace_back("[^.]*");
  for (const std::string& pattern : patterns) {
    boost::smatch groups;
    FT_ASSIGN_OR_RETURN(const bool found, matches_whole(".*\\." + pattern + "\\.(\\d+)\\..*",
                                                        module, &groups, where_));
    if (!found) continue;
    const int64_t layer = std::strtoll(groups[groups.size() - 1].str().c_str(), nullptr, 10);
    return std::ranges::count(layers_, layer) > 0;
  }
  return false;
}

Result<std::optional<double>> PeftConfig::look_up(const Pattern& pattern,
                                                  const std::string& module) const {
  for (const auto& [key, value] : pattern) {
    boost::smatch groups;
    FT_ASSIGN_OR_RETURN(const bool found,
                        matches_whole("(.*\\.)?(" + key + ")", module, &groups, where_));
    if (found) return std::optional<double>(value);
  }
  return std::optional<double>();
}

Result<int32_t> PeftConfig::rank(const std::string& module) const {
  FT_ASSIGN_OR_RETURN(const std::optional<double> own, look_up(rank_pattern_, module));
  if (!own) return rank_;
  if (is_rank(*own)) return static_cast<int32_t>(*own);
  return wrong_type(where_, "rank_pattern", "an object of ranks from 1 on");
}

Result<float> PeftConfig::scale(const std::string& module) const {
  FT_ASSIGN_OR_RETURN(const int32_t own_rank, rank(module));
  FT_ASSIGN_OR_RETURN(const std::optional<double> own, look_up(alpha_pattern_, module));
  const double divisor = rank_stabilized_ ? std::sqrt(double(own_rank)) : double(own_rank);
  const double scale = own.value_or(alpha_) / divisor;
  // False of NaN, too.
  if (std::abs(scale) <= std::numeric_limits<float>::max()) return static_cast<float>(scale);
  return wrong_type(where_, own ? "alpha_pattern" : "lora_alpha", "within the range of a float");
}

}  // namespace foretoken
