#include "apps/generate/prompt_run.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "apps/flags/flag_table.h"
#include "apps/generate/output_printer.h"
#include "apps/generate/request_batch.h"
#include "apps/options/models/default_model.h"
#include "apps/options/sampling_options.h"
#include "apps/options/template_options.h"
#include "apps/terminal/file_text.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "gguf/container/gguf_file.h"
#include "hub/gguf_choice.h"
#include "hub/repo_id.h"

namespace foretoken {
namespace {

// The i-th request goes to the engine, or its error becomes its output.
void start_request(const Engine& engine, const SamplingFlags& flags, PromptItem& item, size_t i,
                   RequestBatch& batch) {
  const Status status = item.error.ok() ? finish_item(engine, flags, &item) : item.error;
  if (status.ok()) return batch.submit(i, item.request);
  batch.refuse(i, status);
}

std::string progress_text(const std::vector<OutputSum>& outputs, double seconds) {
  int64_t num_tokens = 0;
  int num_finished = 0;
  for (const OutputSum& output : outputs) {
    num_tokens += output.stats().num_output_tokens;
    num_finished += output.finished() ? 1 : 0;
  }
  return fmt::format("{} of {} requests done, {}", num_finished, outputs.size(),
                     throughput_line(num_tokens, seconds));
}

// Shows outputs as they come until all are finished or a signal ended them.
void follow(RequestBatch& batch, OutputPrinter& printer, bool with_progress) {
  ProgressLine progress;
  bool aborted = false;
  for (bool done = false; !done;) {
    std::string text;
    std::vector<std::string> errors;
    std::string news;
    const double seconds = batch.seconds();
    done = batch.look([&](const std::vector<OutputSum>& outputs) {
      text = printer.take(outputs, &errors);
      if (with_progress && progress.due()) news = progress_text(outputs, seconds);
    });
    if (!text.empty() || !errors.empty()) progress.clear();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    for (const std::string& error : errors) report_error(error);
    if (!news.empty()) progress.show(news);
    if (interrupt_flag().load() && !aborted) {
      batch.abort_all();
      aborted = true;
    }
  }
}

void print_statistics(const Engine& engine, double seconds, bool json) {
  const EngineStats all = engine.stats();
  const RequestStats& stats = all.requests;
  if (stats.num_output_tokens == 0) return;
  std::string lines = (json ? "" : "\n") + throughput_line(stats.num_output_tokens, seconds) + "\n";
  if (!engine.info().drafter.empty()) {
    lines += drafter_lines(all, engine.info()) + draft_line(stats) + "\n";
  }
  std::fputs(lines.c_str(), json ? stderr : stdout);
  std::fflush(stdout);
}

int run_items(Engine& engine, const SamplingFlags& flags, std::vector<PromptItem>& items,
              bool json) {
  OutputPrinter printer(items, json);
  RequestBatch batch(engine, items.size());
  for (size_t i = 0; i < items.size() && !interrupt_flag().load(); ++i) {
    start_request(engine, flags, items[i], i, batch);
  }
  follow(batch, printer, items.size() > 1);
  const bool interrupted = interrupt_flag().load();
  const int interrupt_code = interrupted ? report_interrupt("while generating") : 0;
  print_statistics(engine, batch.seconds(), json);
  if (interrupted) return interrupt_code;
  return printer.any_failed() ? kExitError : 0;
}

// The items, with everything checked that needs no model.
Result<std::vector<PromptItem>> prepare_items(const PromptRun& options) {
  PromptSources sources = options.sources;
  FT_RETURN_IF_ERROR(sources.sampling.check());
  FT_ASSIGN_OR_RETURN(sources.arguments_json, options.chat_template.arguments_json());
  return collect_prompts(sources);
}

// Whether a bare argument is a model rather than a prompt: a folder or GGUF file that exists, a
// name of a bundled model, or an id of the Hub.
bool names_a_model(const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (text.find_first_of(" \t\n") != std::string::npos) return false;
  const auto holds_gguf = [&] {
    const Result<std::string> file = gguf_in_folder(text);
    return !file.ok() || file.value() != text;
  };
  const bool folder = fs::exists(fs::path(text) / "config.json", error) ||
                      (fs::is_directory(text, error) && holds_gguf());
  return folder || is_gguf(text) || !bundled_model_folder(text).empty() ||
         (std::count(text.begin(), text.end(), '/') == 1 && parse_repo_id(text, "").ok());
}

// What another program or a file gives on stdin, without the line end that echo adds. Empty where
// stdin is a terminal or a device, such as /dev/null.
std::string piped_prompt() {
  struct stat kind = {};
  const bool piped =
      fstat(STDIN_FILENO, &kind) == 0 && (S_ISFIFO(kind.st_mode) || S_ISREG(kind.st_mode));
  if (!piped) return {};
  const Result<std::string> text = read_input_file("-");
  if (!text.ok()) throw CLI::ValidationError(text.status().message());
  std::string prompt = text.value();
  if (prompt.ends_with('\n')) prompt.pop_back();
  if (prompt.ends_with('\r')) prompt.pop_back();
  return prompt;
}

// Takes the prompt of a pipe where no flag names one; `argument` may be the model beside it.
void take_piped_prompt(const std::string& argument, PromptRun& options) {
  std::string prompt = piped_prompt();
  if (prompt.empty() && argument.empty()) {
    throw CLI::RequiredError("a prompt (\"text\", --prompt, --prompt-file, --jsonl or a pipe)");
  }
  if (prompt.empty()) {
    throw CLI::RequiredError("a prompt beside the model '" + argument +
                             "' (--prompt, --prompt-file, --jsonl or a pipe)");
  }
  if (!argument.empty()) options.engine.config.model = argument;
  options.sources.prompts.push_back(std::move(prompt));
}

// A model and a prompt, as of "ollama run".
void take_model_and_prompt(bool named_otherwise, PromptRun& options) {
  if (named_otherwise || !names_a_model(options.argument)) {
    throw CLI::ValidationError("unexpected argument '" + options.prompt +
                               "'; quote values that hold spaces");
  }
  options.engine.config.model = options.argument;
  options.sources.prompts.push_back(options.prompt);
}

}  // namespace

int run_prompts(const PromptRun& options) {
  Result<std::vector<PromptItem>> items = prepare_items(options);
  if (!items.ok()) {
    report_error(items.status().message());
    return kExitError;
  }
  catch_interrupts();
  Result<std::unique_ptr<Engine>> engine = start_engine(options.engine);
  if (interrupt_flag().load()) return report_interrupt("while loading");
  if (!engine.ok()) {
    report_error(engine.status().message());
    return kExitError;
  }
  return run_items(*engine.value(), options.sources.sampling, items.value(), options.json);
}

void add_source_flags(CLI::App& command, PromptRun& options) {
  PromptSources& sources = options.sources;
  command
      .add_option("text", options.argument,
                  "A prompt; beside flags that name prompts or a pipe that gives one, or before a "
                  "prompt, the model")
      ->type_name("TEXT");
  command.add_option("prompt", options.prompt, "The prompt, behind the model")->type_name("TEXT");
  command.add_option("--prompt", sources.prompts, "Prompt; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--prompt-file", sources.prompt_files, "File that is one prompt; -: stdin")
      ->allow_extra_args(false)
      ->type_name(kFileType);
  command
      .add_option("--jsonl", sources.jsonl_files,
                  "File with one request a line: {\"prompt\" | \"prompt_token_ids\" | "
                  "\"messages\": ..., \"max_tokens\": 32, ...}; -: stdin")
      ->allow_extra_args(false)
      ->type_name(kFileType);
  command.add_flag("--chat", sources.chat, "Prompts are user messages for the chat template");
  options.engine.offline = true;
  options.engine.add_to(command, false);
}

void finish_sources(PromptRun& options) {
  PromptSources& sources = options.sources;
  const bool flags =
      !sources.prompts.empty() || !sources.prompt_files.empty() || !sources.jsonl_files.empty();
  const std::string& argument = options.argument;
  std::string& model = options.engine.config.model;
  if (!options.prompt.empty()) return take_model_and_prompt(flags || !model.empty(), options);
  if (argument.empty() && flags) return;
  if (argument.empty()) return take_piped_prompt(argument, options);
  if (flags && !model.empty()) {
    throw CLI::ValidationError("'" + argument + "' stands beside --model and a flag of prompts; " +
                               "if it is a prompt too, give it with --prompt");
  }
  if (!flags && model.empty() && names_a_model(argument)) {
    return take_piped_prompt(argument, options);
  }
  if (flags) {
    model = argument;
  } else {
    sources.prompts.push_back(argument);
  }
}

}  // namespace foretoken
