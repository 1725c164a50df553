#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/engine_names.h"

namespace foretoken {

// vLLM's flags that this engine has no use for: command lines with them run all the same, with a
// warning that says why they have no effect, or are refused with what to use instead.
class VllmFlags {
 public:
  // Adds the whole table; it writes into this object, which must outlive the parsing. `offline`: of
  // a command that serves nobody, which takes a server's flags as Python's LLM does.
  void add_to(CLI::App& app, bool offline = false);

  // Logs a line for each that was given without effect. The error names the first that asks for
  // something that cannot be had. A flag for parts of another folder may name that of `model`.
  Status check(const std::string& model) const;

 private:
  std::vector<std::pair<const VllmName*, std::vector<std::string>>> given_;  // row, values
};

// The arguments with "--tensor-parallel-size" for "-tp", also before a '=' or a '.', and so for all
// short forms of vLLM that are longer than a letter, "-O3" and second names of its flags included.
// A backend within the JSON of --attention-config becomes --attention-backend.
// What can only be llama.cpp's stays as it is: "-hf org/model", and "-n 128" on a line that names
// no host.
std::vector<std::string> expand_vllm_flags(const std::vector<std::string>& arguments);

}  // namespace foretoken
