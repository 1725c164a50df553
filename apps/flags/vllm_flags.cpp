#include "apps/flags/vllm_flags.h"

#include <algorithm>

#include "apps/flags/vllm_flag_table.h"
#include "base/log.h"

namespace foretoken {
namespace {

struct ShortFlag {
  const char* given;
  const char* meant;
};

constexpr ShortFlag kShortFlags[] = {
    {"-tp", "--tensor-parallel-size"},
    {"-pp", "--pipeline-parallel-size"},
    {"-dp", "--data-parallel-size"},
    {"-dpl", "--data-parallel-size-local"},
    {"-dpn", "--data-parallel-rank"},
    {"-dpr", "--data-parallel-start-rank"},
    {"-dpa", "--data-parallel-address"},
    {"-dpp", "--data-parallel-rpc-port"},
    {"-dpb", "--data-parallel-backend"},
    {"-dph", "--data-parallel-hybrid-lb"},
    {"-dpe", "--data-parallel-external-lb"},
    {"-dcp", "--decode-context-parallel-size"},
    {"-pcp", "--prefill-context-parallel-size"},
    {"-ep", "--enable-expert-parallel"},
    {"-n", "--nnodes"},
    {"-r", "--node-rank"},
    {"-q", "--quantization"},
    {"-ac", "--attention-config"},
    {"-cc", "--compilation-config"},
    {"-sc", "--speculative-config"},
    {"-asc", "--api-server-count"},
    {"-hf", "--hf-overrides"},
    {"-O", "--optimization-level"},
};

bool is_harmless(const VllmFlag& flag, const std::string& value) {
  const std::string known = std::string("|") + flag.harmless + "|";
  std::string lower = value;
  std::transform(lower.begin(), lower.end(), lower.begin(), ::tolower);
  return *flag.harmless != '\0' && known.find("|" + lower + "|") != std::string::npos;
}

// Whether its value is a folder or an id that may be the model's own.
bool takes_models_folder(const VllmFlag& flag) {
  const std::string name = flag.name;
  return name == "--tokenizer" || name == "--hf-config-path";
}

// Whether the line names one of several hosts, without which "-n 128" is llama.cpp's.
bool names_a_host(const std::vector<std::string>& arguments) {
  const auto names = [](const std::string& argument) {
    return argument == "-r" || argument.rfind("-r=", 0) == 0 || argument.rfind("--node", 0) == 0 ||
           argument.rfind("--master", 0) == 0;
  };
  return std::any_of(arguments.begin(), arguments.end(), names);
}

// llama.cpp has two of vLLM's short names for something else: -hf org/model, and -n 128 for tokens.
bool is_llama_cpps(const std::vector<std::string>& arguments, size_t i) {
  const std::string name = arguments[i].substr(0, arguments[i].find('='));
  if (name == "-n") return !names_a_host(arguments);
  if (name != "-hf") return false;
  const bool apart = name.size() == arguments[i].size();
  if (apart && i + 1 == arguments.size()) return false;
  const std::string value = apart ? arguments[i + 1] : arguments[i].substr(name.size() + 1);
  return value.empty() || value.front() != '{';
}

std::string expand(const std::string& argument) {
  for (const ShortFlag& flag : kShortFlags) {
    const std::string name = flag.given;
    if (argument == name) return flag.meant;
    if (argument.rfind(name + "=", 0) == 0 || argument.rfind(name + ".", 0) == 0) {
      return flag.meant + argument.substr(name.size());
    }
  }
  const bool level = argument.size() == 3 && argument.rfind("-O", 0) == 0;
  return level ? "--optimization-level=" + argument.substr(2) : argument;
}

}  // namespace

void VllmFlags::add_to(CLI::App& app) {
  const std::span<const VllmFlag> table = vllm_flag_table();
  for (size_t i = 0; i < table.size(); ++i) {
    const VllmFlag& flag = table[i];
    const std::string name = flag.name;
    if (flag.takes == VllmFlag::Takes::kNothing) {
      const auto note = [this, i](int64_t count) {
        given_.emplace_back(i, std::vector<std::string>{count > 0 ? "true" : "false"});
      };
      app.add_flag_function(name + ",!--no-" + name.substr(2), note)->group("");
      continue;
    }
    const auto note = [this, i](const std::vector<std::string>& values) {
      given_.emplace_back(i, values);
    };
    CLI::Option* option = app.add_option_function<std::vector<std::string>>(name, note);
    if (flag.takes == VllmFlag::Takes::kValue) option->expected(1)->take_last();
    option->group("");
  }
}

Status VllmFlags::check(const std::string& model) const {
  for (const auto& [line, values] : given_) {
    const VllmFlag& flag = vllm_flag_table()[line];
    const std::string value = values.empty() ? "" : values.back();
    if (is_harmless(flag, value) || (takes_models_folder(flag) && value == model)) continue;
    const bool off = flag.takes == VllmFlag::Takes::kNothing && value == "false";
    if (flag.refused && !off) {
      const std::string shown = flag.takes == VllmFlag::Takes::kNothing ? "" : " " + value;
      return unsupported(flag.name + shown + ": " + flag.why);
    }
    FT_LOG(warn, "{} has no effect: {}", flag.name, flag.why);
  }
  return {};
}

std::vector<std::string> expand_vllm_flags(const std::vector<std::string>& arguments) {
  std::vector<std::string> expanded;
  for (size_t i = 0; i < arguments.size(); ++i) {
    expanded.push_back(is_llama_cpps(arguments, i) ? arguments[i] : expand(arguments[i]));
  }
  return expanded;
}

}  // namespace foretoken
