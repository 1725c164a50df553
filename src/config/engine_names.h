#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/engine_field.h"

namespace foretoken {

// A name of vLLM's configuration that this engine does not act on, for the command line and for
// Python. Its names that mean something here are those of our own fields and flags.
struct VllmName {
  enum class Takes : uint8_t { kNothing, kValue, kValues };

  const char* name;  // "tokenizer_mode"; the flag is "--tokenizer-mode"
  Takes takes;       // of a flag; kNothing: "--no-" before its name turns it off
  // The values, separated by '|', that ask for nothing special and pass in silence ("" : none).
  // MODEL stands for the folder or id of the model itself, an object for all objects whose members
  // of its names are as there, or left out. Empty values and objects and "None" always pass.
  const char* harmless;
  bool refused;     // other values are an error; otherwise a warning
  const char* why;  // why it has no effect, or what to do instead
  FieldDoor doors = kEveryDoor;
  // Of a refused name: the values, as `harmless` has them, that pass with a warning.
  const char* passed_over = "";
};

// Why what vLLM compiles has no effect.
inline constexpr const char* kNoCompiler = "nothing is compiled at start; steps are graphs anyway";

std::span<const VllmName> vllm_names();

// Fields of vLLM's compilation config that are about torch.compile, of which there is none here.
std::span<const char* const> vllm_compiler_fields();

// The row of a name at a door; null: there is none.
const VllmName* find_vllm_name(std::string_view name, FieldDoor door);

enum class NameVerdict : uint8_t { kHarmless, kWithoutEffect, kRefused };

// Whether vLLM takes a value for none: "None", nothing, null or {}.
bool asks_for_nothing(const std::string& value);

// What becomes of a value, "true" and "false" for switches, beside this model.
NameVerdict judge_vllm_name(const VllmName& name, const std::string& value,
                            const std::string& model);

// A sentence with our flags in it, as Python spells them: "max_num_seqs" for "--max-num-seqs".
std::string with_field_names(const std::string& text);

}  // namespace foretoken
