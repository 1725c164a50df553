#pragma once
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/files/forms/quantization.h"

namespace foretoken {

// The fields of one quantization_config; the first error stays.
class QuantizationReader {
 public:
  // Both must outlive it; `where` begins the messages.
  QuantizationReader(const nlohmann::json& json, const std::string& where)
      : json_(json), where_(where) {}

  const Status& status() const { return status_; }
  bool failed() const { return !status_.ok(); }

  std::string text(const char* name, const char* otherwise);
  // Of one of two names, from -1 to 2^24.
  int64_t integer(const char* name, const char* other_name, int64_t otherwise);
  // A field that must be missing, null, false or empty.
  void want_none(const char* name);
  void want(bool holds, const std::string& otherwise);
  // With the reason in place of the list of what is read.
  void want_because(bool holds, const std::string& what, const std::string& why);
  // Null: missing or null.
  const nlohmann::json* find(const char* name) const;

 private:
  void refuse(const std::string& what);

  const nlohmann::json& json_;
  const std::string& where_;
  Status status_;
};

// "4 bits".
std::string bits_text(int64_t bits);

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> all);

// Whether a field is missing or says nothing.
bool is_empty_field(const nlohmann::json* value);

// The field `name`, [rows, columns] or "128x128" that share a scale, where there is one.
void read_block(QuantizationReader& reader, const char* name, Quantization* out);

// Codes and scales of which the tensors tell all.
void set_scaled(Quantization* out);

}  // namespace foretoken
