#include "draft/parts/method_fields.h"

namespace foretoken {

bool is_given(const SpeculativeConfig& config, const MethodField& field) {
  return field.member != nullptr ? config.*field.member != 0
                                 : config.method_fields.contains(field.name);
}

void set_field(const MethodField& field, double value, SpeculativeConfig* config) {
  if (field.member != nullptr) {
    config->*field.member = static_cast<int>(value);
  } else {
    config->method_fields[field.name] = value;
  }
}

double method_field(const SpeculativeConfig& config, const char* name, double otherwise) {
  const auto found = config.method_fields.find(name);
  return found == config.method_fields.end() ? otherwise : found->second;
}

}  // namespace foretoken
