#include "apps/flags/vllm_flags.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "config/engine_names.h"

namespace foretoken {
namespace {

struct OtherName {
  const char* given;
  const char* meant;
};

constexpr OtherName kOtherNames[] = {
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
    {"--model-tag", "--model"},
    {"--cc", "--compilation-config"},
    {"--sc", "--speculative-config"},
    {"--ac", "--attention-config"},
    {"--attention-config.backend", "--attention-backend"},
    {"--device-memory-utilization", "--gpu-memory-utilization"},
};

std::string flag_of(const VllmName& row) {
  std::string flag = std::string("--") + row.name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
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
  for (const OtherName& flag : kOtherNames) {
    const std::string name = flag.given;
    if (argument == name) return flag.meant;
    if (argument.rfind(name + "=", 0) == 0 || argument.rfind(name + ".", 0) == 0) {
      return flag.meant + argument.substr(name.size());
    }
  }
  const bool level = argument.size() == 3 && argument.rfind("-O", 0) == 0;
  return level ? "--optimization-level=" + argument.substr(2) : argument;
}

// vLLM's JSON of kernels: the backend among it has a flag of its own here, and what is left is
// judged as it is. Whether `value` names one.
bool take_attention_backend(const std::string& value, std::vector<std::string>* arguments) {
  auto config = nlohmann::json::parse(value, nullptr, false);
  if (!config.is_object() || !config.contains("backend") || !config["backend"].is_string()) {
    return false;
  }
  arguments->push_back("--attention-backend");
  arguments->push_back(config["backend"].get<std::string>());
  config.erase("backend");
  if (config.empty()) return true;
  arguments->push_back("--attention-config");
  arguments->push_back(config.dump());
  return true;
}

}  // namespace

void VllmFlags::add_to(CLI::App& app, bool offline) {
  const int doors = kCommandLine | (offline ? kOfflineCommands : 0);
  for (const VllmName& row : vllm_names()) {
    if ((row.doors & doors) == 0) continue;
    const std::string flag = flag_of(row);
    if (row.takes == VllmName::Takes::kNothing) {
      const auto note = [this, &row](int64_t count) {
        given_.emplace_back(&row, std::vector<std::string>{count > 0 ? "true" : "false"});
      };
      app.add_flag_function(flag + ",!--no-" + flag.substr(2), note)->group("");
      continue;
    }
    const auto note = [this, &row](const std::vector<std::string>& values) {
      given_.emplace_back(&row, values);
    };
    CLI::Option* option = app.add_option_function<std::vector<std::string>>(flag, note);
    if (row.takes == VllmName::Takes::kValue) option->expected(1)->take_last();
    option->group("");
  }
}

Status VllmFlags::check(const std::string& model) const {
  for (const auto& [row, values] : given_) {
    const std::string value = values.empty() ? "" : values.back();
    const NameVerdict verdict = judge_vllm_name(*row, value, model);
    if (verdict == NameVerdict::kHarmless) continue;
    const std::string flag = flag_of(*row);
    if (verdict == NameVerdict::kRefused) {
      const bool is_switch = row->takes == VllmName::Takes::kNothing;
      return unsupported(flag + (is_switch ? "" : " " + value) + ": " + row->why);
    }
    FT_LOG(warn, "{} has no effect: {}", flag, row->why);
  }
  return {};
}

std::vector<std::string> expand_vllm_flags(const std::vector<std::string>& arguments) {
  std::vector<std::string> expanded;
  constexpr std::string_view kKernels = "--attention-config", kJoined = "--attention-config=";
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string argument = is_llama_cpps(arguments, i) ? arguments[i] : expand(arguments[i]);
    const bool is_apart = argument == kKernels && i + 1 < arguments.size();
    if (is_apart && take_attention_backend(arguments[i + 1], &expanded)) {
      ++i;
    } else if (!argument.starts_with(kJoined) ||
               !take_attention_backend(argument.substr(kJoined.size()), &expanded)) {
      expanded.push_back(std::move(argument));
    }
  }
  return expanded;
}

}  // namespace foretoken
