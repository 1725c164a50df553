#pragma once
#include <span>

namespace foretoken {

// A flag of `vllm serve` that this engine does not act on.
struct VllmFlag {
  enum class Takes { kNothing, kValue, kValues };

  const char* name;  // "--tensor-parallel-size"
  Takes takes;       // kNothing: "--no-" before its name turns it off
  // The values, separated by '|', that ask for nothing special and pass in silence ("" : none).
  const char* harmless;
  bool refused;     // other values are an error; otherwise a warning
  const char* why;  // why it has no effect, or what to do instead
};

// Why what vLLM compiles has no effect.
inline constexpr const char* kNoCompiler = "nothing is compiled at start; steps are graphs anyway";

std::span<const VllmFlag> vllm_flag_table();

}  // namespace foretoken
