#pragma once
#include <foretoken/config.h>

namespace foretoken {

// A number in speculative configs that one method alone reads; the method's row of the registry
// lists it.
struct MethodField {
  const char* name;  // vLLM's where it has one
  bool is_whole = true;
  // Where the public struct has a member of that name, 0 of which means not given; otherwise null,
  // and the number stands in SpeculativeConfig::method_fields.
  int SpeculativeConfig::* member = nullptr;
};

bool is_given(const SpeculativeConfig& config, const MethodField& field);
void set_field(const MethodField& field, double value, SpeculativeConfig* config);

// The number of this name in method_fields, for the drafter that is made; `otherwise` where it was
// not given.
double method_field(const SpeculativeConfig& config, const char* name, double otherwise);

}  // namespace foretoken
