#pragma once
#include <span>
#include <string_view>

namespace foretoken {

// A variable of vLLM's or llama-server's environment that has no effect here.
struct ForeignVariable {
  const char* name;
  const char* instead;  // "use --port"
};

std::span<const ForeignVariable> foreign_variables();

// Those of vLLM that need no word.
std::span<const std::string_view> kept_variables();

}  // namespace foretoken
