#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "engine_options.h"
#include "interrupt.h"
#include "output_printer.h"
#include "progress_line.h"
#include "report.h"
#include "request_batch.h"
#include "sampling_options.h"

namespace foretoken {
namespace {

struct GenerateOptions {
  EngineOptions engine;
  PromptSources sources;
  bool json = false;
};

// The i-th request goes to the engine, or its error becomes its output.
void start_request(const Engine& engine, PromptItem& item, size_t i, RequestBatch& batch) {
  Status status = item.error;
  if (status.ok() && !item.messages_json.empty()) {
    std::string prompt;
    status = engine.render_chat(item.messages_json, "", &prompt);
    item.request.prompt = std::move(prompt);
    item.request.add_special_tokens = false;
  }
  if (status.ok()) return batch.submit(i, item.request);
  batch.refuse(i, status);
}

std::string progress_text(const std::vector<RequestOutput>& outputs, double seconds) {
  int64_t num_tokens = 0;
  int num_finished = 0;
  for (const RequestOutput& output : outputs) {
    num_tokens += output.stats.num_output_tokens;
    num_finished += output.finished ? 1 : 0;
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
    done = batch.look([&](const std::vector<RequestOutput>& outputs) {
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
  const RequestStats stats = engine.stats().requests;
  if (stats.num_output_tokens == 0) return;
  std::string lines = (json ? "" : "\n") + throughput_line(stats.num_output_tokens, seconds) + "\n";
  if (!engine.info().drafter.empty()) lines += draft_line(stats) + "\n";
  std::fputs(lines.c_str(), json ? stderr : stdout);
  std::fflush(stdout);
}

int run_prompts(Engine& engine, std::vector<PromptItem>& items, bool json) {
  OutputPrinter printer(items, json);
  RequestBatch batch(engine, items.size());
  for (size_t i = 0; i < items.size() && !interrupt_flag().load(); ++i) {
    start_request(engine, items[i], i, batch);
  }
  follow(batch, printer, items.size() > 1);
  const bool interrupted = interrupt_flag().load();
  const int interrupt_code = interrupted ? report_interrupt("while generating") : 0;
  print_statistics(engine, batch.seconds(), json);
  if (interrupted) return interrupt_code;
  return printer.any_failed() ? kExitError : 0;
}

int generate(const GenerateOptions& options) {
  Result<std::vector<PromptItem>> items = collect_prompts(options.sources);
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
  return run_prompts(*engine.value(), items.value(), options.json);
}

}  // namespace

void add_generate_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "Generate text for prompts");
  PromptSources& sources = options->sources;
  command->add_option("--prompt", sources.prompts, "Prompt; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--prompt-file", sources.prompt_files, "File that is one prompt; -: stdin")
      ->allow_extra_args(false);
  command
      ->add_option("--jsonl", sources.jsonl_files,
                   "File with one request a line: {\"prompt\" | \"prompt_token_ids\" | "
                   "\"messages\": ..., \"max_tokens\": 32, ...}; -: stdin")
      ->allow_extra_args(false);
  command->add_flag("--chat", sources.chat, "Prompts are user messages for the chat template");
  command->add_flag("--json", options->json, "One JSON object a line; statistics go to stderr");
  add_sampling_flags(*command, sources.sampling);
  options->engine.add_to(*command);
  command->callback([options, run] {
    const PromptSources& given = options->sources;
    if (given.prompts.empty() && given.prompt_files.empty() && given.jsonl_files.empty()) {
      throw CLI::RequiredError("--prompt, --prompt-file or --jsonl");
    }
    *run = [options] { return generate(*options); };
  });
}

}  // namespace foretoken
