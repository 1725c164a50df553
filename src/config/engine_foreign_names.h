#pragma once
#include <span>
#include <string>

namespace foretoken {

// A flag of llama.cpp's programs, SGLang's launch_server or TensorRT-LLM's trtllm-serve, and what
// it is here.
struct ForeignFlag {
  enum class Takes { kNothing, kValue, kPerhaps };

  const char* names;  // "-c|--ctx-size"
  Takes takes;        // kPerhaps: a word that follows and is no flag is its value
  // Our flags for it, % standing for the value; the first whose flags a command has is the one to
  // name. Null: none.
  const char* uses[2];
  const char* note;  // why there is none, or a word beside it ("" : none)
  // The value here for the value there; empty where the flag is better left out. Null: the same.
  std::string (*translate)(const std::string& value);
};

// All of them.
std::span<const ForeignFlag> foreign_flag_table();

// Those of SGLang's launcher alone, and those of TensorRT-LLM's and TGI's.
std::span<const ForeignFlag> sglang_flag_table();
std::span<const ForeignFlag> launcher_flag_table();

}  // namespace foretoken
