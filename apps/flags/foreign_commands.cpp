#include "apps/flags/foreign_commands.h"

#include <algorithm>
#include <utility>

#include "apps/flags/foreign_flags.h"

namespace foretoken {
namespace {

// Other programs and their commands, and what is called here instead.
constexpr std::pair<const char*, const char*> kCommands[] = {
    {"llama-server", "foretoken serve"},
    {"llama_cpp.server", "foretoken serve"},
    {"sglang", "foretoken serve"},
    {"trtllm-serve", "foretoken serve"},
    {"text-generation-launcher", "foretoken serve"},
    {"launch_server", "foretoken serve"},
    {"launch-server", "foretoken serve"},
    {"server", "foretoken serve"},
    {"start", "foretoken serve"},
    {"ollama", "foretoken serve or foretoken chat"},
    {"llama-cli", "foretoken chat"},
    {"llama-run", "foretoken chat"},
    {"run", "foretoken chat --model MODEL"},
    {"llama-completion", "foretoken generate"},
    {"complete", "foretoken generate"},
    {"completion", "foretoken generate"},
    {"llama-bench", "foretoken bench latency"},
    {"benchmark", "foretoken bench"},
    {"llama-embedding", "foretoken embed"},
    {"embeddings", "foretoken embed"},
    {"llama-quantize", "foretoken convert"},
    {"quantize", "foretoken convert"},
    {"pull", "foretoken download"},
    {"collect-env", "foretoken inspect"},
    {"info", "foretoken inspect"},
    {"show", "foretoken inspect --model MODEL"},
    {"version", "foretoken --version"},
};

bool names_a_command(const CLI::App& app, const std::string& word) {
  const auto commands = app.get_subcommands({});
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* one) { return one->get_name() == word; });
}

// A word too much before or behind the command of the program: "vllm", or the command again.
std::string doubled_fault(const CLI::App& command, std::span<const std::string> arguments) {
  const std::string& word = arguments.front();
  const CLI::App* parent = command.get_parent();
  const bool has_more = arguments.size() > 1 && !looks_like_flag(arguments[1]);
  const bool is_again = parent != nullptr && word == command.get_name();
  if (!has_more || (word != "vllm" && word != "foretoken" && !is_again)) return {};
  return is_again ? "'" + word + "' stands twice; leave one of them out"
                  : "leave '" + word + "' out, as in foretoken serve MODEL";
}

}  // namespace

std::string foreign_command_fault(const CLI::App& command, std::span<const std::string> arguments) {
  const std::string& word = arguments.front();
  if (const bool is_program = command.get_parent() == nullptr; !is_program) {
    return command.get_name() == "serve" ? doubled_fault(command, arguments) : std::string();
  }
  if (names_a_command(command, word)) return {};
  if (looks_like_flag(word)) {
    const std::string name = word.substr(0, word.find('='));
    const auto commands = command.get_subcommands({});
    const auto serve = std::find_if(commands.begin(), commands.end(),
                                    [](const CLI::App* one) { return one->get_name() == "serve"; });
    const bool is_of_serve = serve != commands.end() && find_flag(**serve, name) != nullptr;
    if (!is_of_serve || find_flag(command, name) != nullptr) return {};
    return name + " is a flag of a command; name the command before, as in foretoken serve " + name;
  }
  if (std::string fault = doubled_fault(command, arguments); !fault.empty()) return fault;
  for (const auto& [theirs, ours] : kCommands) {
    if (word == theirs) return "there is no command '" + word + "'; use " + ours;
  }
  return {};
}

}  // namespace foretoken
