#include <foretoken/version.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "apps/flags/abbreviated_flags.h"
#include "apps/flags/config_file.h"
#include "apps/flags/unknown_flag.h"
#include "apps/flags/usage_message.h"
#include "apps/flags/vllm_flags.h"
#include "apps/options/commands.h"
#include "apps/options/dotted_flags.h"
#include "apps/options/rank_process.h"
#include "apps/terminal/report.h"
#include "base/process_limits.h"
#include "base/thread_limit.h"

namespace foretoken {
namespace {

// As vLLM reads its flags: --max_model_len is --max-model-len.
std::string normalise_flag(std::string argument) {
  if (argument.rfind("--", 0) == 0) {
    const size_t end = std::min(argument.find_first_of("=."), argument.size());
    std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  }
  return argument;
}

// "foretoken bench latency".
std::string full_name(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_name() + (chosen.empty() ? "" : " " + full_name(*chosen.front()));
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  report_error(usage_message(app, error) + " (see " + full_name(app) + " --help)");
  return kExitUsage;
}

// The arguments as CLI11 gets them.
Result<std::vector<std::string>> read_arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(1, argc), argv + argc);
  for (std::string& argument : arguments) argument = normalise_flag(std::move(argument));
  arguments = expand_vllm_flags(arguments);
  if (!arguments.empty() && arguments.front() == "serve") {
    FT_ASSIGN_OR_RETURN(arguments, expand_config_file(std::move(arguments)));
    arguments = expand_vllm_flags(arguments);
  }
  return fold_dotted_flags(arguments);
}

struct Command {
  const char* name;
  void (*add)(CLI::App& app, std::function<int()>* run);
};
constexpr Command kCommands[] = {{"generate", add_generate_command},
                                 {"chat", add_chat_command},
                                 {"embed", add_embed_command},
                                 {"serve", add_serve_command},
                                 {"run-batch", add_run_batch_command},
                                 {"bench", add_bench_command},
                                 {"inspect", add_inspect_command},
                                 {"download", add_download_command},
                                 {"convert", add_convert_command},
                                 {"matrix", add_matrix_command},
                                 {"tune", add_tune_command}};

// The one that the line calls, or all where it calls none of these: the flags of all take most of
// the time of a short command.
void add_commands(CLI::App& app, const std::string& called, std::function<int()>* run) {
  const auto is_called = [&](const Command& command) { return command.name == called; };
  const bool is_one = std::any_of(std::begin(kCommands), std::end(kCommands), is_called);
  for (const Command& command : kCommands) {
    if (!is_one || is_called(command)) command.add(app, run);
  }
  if (!is_one) add_manual_commands(app, run);
}

int run_main(int argc, char** argv) {
  CLI::App app("Foretoken: text generation with speculative decoding", "foretoken");
  app.set_version_flag("--version", std::string("foretoken ") + kVersion);
  app.require_subcommand(1);
  // Scripts append to command lines that hold defaults.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::function<int()> run;
  add_commands(app, argc > 1 ? argv[1] : "", &run);
  Result<std::vector<std::string>> read = read_arguments(argc, argv);
  if (!read.ok()) {
    report_error(read.status().message());
    return kExitUsage;
  }
  std::vector<std::string> arguments = complete_flags(app, std::move(read).value());
  if (const std::string fault = flag_fault(app, arguments); !fault.empty()) {
    report_error(fault);
    return kExitUsage;
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& wish) {
    return app.exit(wish);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  if (const std::string fault = limit_fault(process_limits()); !fault.empty()) {
    report_error(fault);
    return kExitError;
  }
  if (const std::optional<int> code = run_as_other_rank()) return *code;
  const int code = run();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return code;
  // Of what failed before the reason is not known any more.
  const std::string reason = flushed ? std::string() : std::string(": ") + std::strerror(errno);
  report_error("the output could not be written" + reason);
  return code == 0 ? kExitError : code;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  // A file that may not grow (ulimit -f) is an error of what writes it, not an end without a word.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return foretoken::run_main(argc, argv);
  } catch (const std::bad_alloc&) {
    foretoken::report_error("out of memory; lower --max-model-len, --max-num-seqs or the KV cache");
  } catch (const std::system_error& error) {
    foretoken::report_error(foretoken::is_thread_limit(error)
                                ? foretoken::thread_limit_reached().message()
                                : error.what());
  } catch (const std::exception& error) {
    foretoken::report_error(error.what());
  }
  return foretoken::kExitError;
}
