#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Typed fields of a JSON object that a user wrote. A field that is null counts as missing; a
// missing one leaves *out as it is. Errors are InvalidArgument and name the object, the field and
// what it must be.
class ConfigFields {
 public:
  // `object` must outlive this; `where` is named in messages, for example the path of the file.
  // takes_overrides: --hf-overrides reaches it, as the target's; a drafter's files it does not.
  ConfigFields(const nlohmann::json& object, std::string where, bool takes_overrides = true)
      : object_(object), where_(std::move(where)), takes_overrides_(takes_overrides) {}
  // An object of the same file, or one that was made of it.
  ConfigFields of(const nlohmann::json& object, const std::string& name = "") const {
    return {object, name.empty() ? where_ : where_ + " (" + name + ")", takes_overrides_};
  }

  const std::string& where() const { return where_; }
  // Null when the field is missing.
  const nlohmann::json* find(const char* name) const;

  Status read_count(const char* name, int32_t* out) const;  // an integer from 1 to 2^24
  // The same, or 0, which leaves *out as it is.
  Status read_count_or_none(const char* name, int32_t* out) const;
  Status read_positive(const char* name, double* out) const;
  Status read_flag(const char* name, bool* out) const;
  Status read_positive_list(const char* name, std::vector<double>* out) const;
  // The same for a field that must be there.
  Status need_count(const char* name, int32_t* out) const;
  Status need_positive(const char* name, double* out) const;

  Status missing(const char* name) const;
  // For a field that is there.
  Status wrong(const char* name, const std::string& wanted) const;

 private:
  const nlohmann::json& object_;
  const std::string where_;
  const bool takes_overrides_;
};

// The ids of a number or a list of them, without those that are null; one that no id can be is -1.
// None: it holds something that is no whole number.
std::optional<std::vector<int32_t>> read_token_ids(const nlohmann::json& value);

// A field of old files, and the name that newer ones have for it.
struct RenamedField {
  const char* own;
  const char* common;
};
// Gives such fields their common names in *json.
void take_renamed(const ConfigFields& fields, std::span<const RenamedField> names,
                  nlohmann::json* json);
// The same for the fields of GPT-2 and what has its names; MLPs are four times as wide as the
// layers where the object does not say. An error without `n_embd`.
Status take_gpt2_names(const ConfigFields& fields, nlohmann::json* json);

}  // namespace foretoken
