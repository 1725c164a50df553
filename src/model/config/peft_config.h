#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The remedy for parts of adapters that are not computed here, but that PEFT can add to the model.
inline constexpr const char* kMergeAdapter =
    "merge the adapter into its model with PEFT's merge_and_unload() and load the result";
// Those for folders whose parts do not fit each other, or the model.
inline constexpr const char* kSaveAdapter = "save the adapter again with PEFT's save_pretrained()";
inline constexpr const char* kOtherModel =
    "it was trained on another model; load it beside that one";

// What the adapter_config.json of a PEFT folder says about a LoRA adapter (Hu et al. 2021) that can
// be applied beside a model's own weights.
class PeftConfig {
 public:
  // Unsupported, naming the field, for what is no LoRA of linear layers: another peft_type,
  // biases and the like. InvalidArgument for an ill-typed field.
  static Result<PeftConfig> parse(const nlohmann::ordered_json& config, const std::string& where);

  // Whether modules_to_save names that module.
  Result<bool> saves(const std::string& module) const { return matches(modules_to_save_, module); }
  // The names that modules_to_save lists.
  std::vector<std::string> saved_modules() const;
  // The ids whose rows were trained of that embedding or output matrix (trainable_token_indices).
  // Null: none.
  const std::vector<int32_t>* trained_tokens(const std::string& module) const;
  bool trains_tokens() const { return !trained_tokens_.empty(); }
  // The names of the modules that trainable_token_indices lists ids of; empty where it names none.
  std::vector<std::string> token_modules() const;
  // Where these stand last in a prompt the adapter begins to act (Greenewald et al. 2025,
  // alora_invocation_tokens). Empty: it always acts.
  const std::vector<int32_t>& invocation() const { return invocation_; }
  // An output matrix that is tied to the embedding follows it (ensure_weight_tying).
  bool ties_head() const { return ties_head_; }
  // It has magnitudes of the outputs, too (use_dora).
  bool uses_dora() const { return uses_dora_; }
  // The model has its matrices as [inputs, outputs] (fan_in_fan_out).
  bool transposes() const { return transposes_; }

  // Of a module by its full name, as "model.layers.3.self_attn.q_proj". Errors: a pattern that is
  // no regular expression, or whose matching takes too long.
  Result<bool> targets(const std::string& module) const;
  Result<int32_t> rank(const std::string& module) const;
  // What the adapter's products are multiplied with.
  Result<float> scale(const std::string& module) const;

 private:
  // A regular expression, or endings of names; none of both: no module.
  using Modules = std::variant<std::monostate, std::string, std::vector<std::string>>;
  using Pattern = std::vector<std::pair<std::string, double>>;  // by regular expression

  Status read_numbers(const nlohmann::ordered_json& config);
  Status read_modules(const nlohmann::ordered_json& config, const char* field, Modules* out) const;
  Status read_pattern(const nlohmann::ordered_json& config, const char* field, Pattern* out) const;
  Status read_layers(const nlohmann::ordered_json& config);
  Status read_tokens(const nlohmann::ordered_json& config);
  Result<bool> matches(const Modules& modules, const std::string& module) const;
  Result<bool> is_in_layers(const std::string& module) const;
  Result<std::optional<double>> look_up(const Pattern& pattern, const std::string& module) const;

  std::string where_;
  int32_t rank_ = 8;
  double alpha_ = 8;
  bool rank_stabilized_ = false;
  bool ties_head_ = false;
  bool uses_dora_ = false;
  bool transposes_ = false;
  Modules target_modules_;
  Modules exclude_modules_;
  Modules modules_to_save_;
  Pattern rank_pattern_;
  Pattern alpha_pattern_;
  std::vector<int64_t> layers_;  // empty: all
  std::vector<std::string> layers_pattern_;
  std::vector<std::pair<std::string, std::vector<int32_t>>> trained_tokens_;  // by module
  std::vector<int32_t> invocation_;
};

}  // namespace foretoken
