#pragma once
#include <span>
#include <string_view>

namespace foretoken {

// A value of quant_method that is read, for lists.
struct QuantizationMethod {
  const char* names;  // with others that mean the same, ", " between them
  const char* description;
};

std::span<const QuantizationMethod> quantization_methods();

// A value of quant_method that is not read.
struct RefusedMethod {
  std::string_view name;
  const char* why;  // behind "quant_method 'NAME' is not read: "
};

std::span<const RefusedMethod> refused_methods();

// The row of a method; null where nothing is known of it.
const RefusedMethod* find_refused_method(std::string_view name);

}  // namespace foretoken
