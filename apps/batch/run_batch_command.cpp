#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/batch/batch_file.h"
#include "apps/batch/batch_runner.h"
#include "apps/flags/flag_table.h"
#include "apps/options/commands.h"
#include "apps/options/engine_options.h"
#include "apps/options/prompt_item.h"
#include "apps/options/sampling_options.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "compat/compat.h"

namespace foretoken {
namespace {

struct RunBatchOptions {
  EngineOptions engine;
  std::string input;
  std::string output;
  std::vector<std::string> served_model_names;
  std::string pooling = "auto";
  std::string metrics = "none";  // of speculation, for each request
  SpeculativeParams speculative;
  bool strict_fields = false;
};

// How far a batch has come.
struct BatchProgress {
  int64_t num_all = 0;
  int64_t num_done = 0;    // earlier runs included
  int64_t num_failed = 0;  // of this run
  int64_t num_tokens = 0;  // of this run
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  std::string text() const {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return fmt::format("{} of {} requests done, {} failed, {}", num_done, num_all, num_failed,
                       throughput_line(num_tokens, seconds));
  }
};

OpenAiDefaults make_defaults(const Engine& engine, const RunBatchOptions& options) {
  AnswerSettings settings;
  settings.tool_parser = "auto";
  settings.reasoning_parser = "auto";
  settings.pooling = parse_pooling(options.pooling).value();
  settings.speculative = options.speculative;
  settings.strict_fields = options.strict_fields;
  std::vector<std::string> names = options.served_model_names;
  const std::string model = options.engine.resolve().value().model;
  names.push_back(model);
  const std::filesystem::path folder = std::filesystem::weakly_canonical(model);
  names.push_back(folder.filename().string());
  // Reports have the first name.
  if (std::erase(names, kAnyModel) > 0) names.emplace_back(kAnyModel);
  return make_openai_defaults(engine, settings, std::move(names));
}

BatchReport make_report(const RunBatchOptions& options, const EngineInfo& info,
                        const std::string& model) {
  return {model, options.metrics == "summary", info.has_synthetic_acceptance, info.drafters};
}

// What is wrong with --per-request-spec-decode-metrics.
Status check_metrics(const RunBatchOptions& options) {
  FT_ASSIGN_OR_RETURN(const bool wanted, wants_speculation_metrics(options.metrics));
  if (!wanted) return {};
  FT_ASSIGN_OR_RETURN(const EngineConfig config, options.engine.resolve());
  return compat(
      {.drafts = !config.speculative.empty(),
       .speculative_wish = "--per-request-spec-decode-metrics " + options.metrics + " is given"});
}

class Batch {
 public:
  Batch(Engine& engine, const RunBatchOptions& options, BatchReader reader, BatchWriter writer,
        BatchDone done)
      : defaults_(make_defaults(engine, options)),
        report_(make_report(options, engine.info(), defaults_.model_names.front())),
        // Enough that the engine is never short of work while lines are written.
        window_(2 * static_cast<size_t>(engine.info().max_num_seqs) + 16),
        reader_(std::move(reader)),
        writer_(std::move(writer)),
        done_(std::move(done)),
        runner_(engine, defaults_) {}

  // Runs what is not done; what a signal cut short is not written.
  Status run(BatchProgress* progress) {
    ProgressLine line;
    bool aborted = false;
    while (true) {
      if (!interrupt_flag().load()) fill();
      if (runner_.num_open() == 0) return {};
      for (const std::unique_ptr<BatchJob>& job : runner_.take_finished()) {
        if (interrupt_flag().load() && was_cut(*job)) continue;
        FT_RETURN_IF_ERROR(writer_.append(job->output_line(report_)));
        ++progress->num_done;
        progress->num_failed += job->error.ok() ? 0 : 1;
        progress->num_tokens += job->num_output_tokens();
      }
      if (interrupt_flag().load() && !aborted) {
        runner_.abort_all();
        aborted = true;
      }
      if (line.due()) line.show(progress->text());
    }
  }

 private:
  static bool was_cut(const BatchJob& job) {
    for (const OutputSum& sum : job.sums) {
      for (const RequestOutput& choice : sum.choices()) {
        if (choice.finish_reason == FinishReason::kAbort) return true;
      }
    }
    return job.error.code() == StatusCode::kAborted;
  }

  void fill() {
    std::string text;
    int64_t number = 0;
    while (runner_.num_open() < window_ && reader_.next(&text, &number)) {
      BatchLine line = parse_batch_line(text, number);
      if (!done_.has(line)) runner_.start(std::move(line));
    }
  }

  const OpenAiDefaults defaults_;
  const BatchReport report_;
  const size_t window_;
  BatchReader reader_;
  BatchWriter writer_;
  const BatchDone done_;
  BatchRunner runner_;
};

// Everything about the files is checked before the model loads.
Result<BatchProgress> run_batch_file(const RunBatchOptions& options) {
  BatchProgress progress;
  FT_RETURN_IF_ERROR(check_metrics(options));
  std::error_code error;
  if (std::filesystem::equivalent(options.input, options.output, error)) {
    return invalid_argument("-i and -o name the same file '" + options.input +
                            "'; name another one with -o");
  }
  FT_ASSIGN_OR_RETURN(progress.num_all, check_batch_input(options.input));
  FT_ASSIGN_OR_RETURN(BatchReader reader, BatchReader::open(options.input));
  FT_ASSIGN_OR_RETURN(BatchDone done, resume_batch_output(options.output));
  FT_ASSIGN_OR_RETURN(BatchWriter writer, BatchWriter::open(options.output));
  progress.num_done = static_cast<int64_t>(done.size());
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  progress.start = std::chrono::steady_clock::now();
  Batch batch(*engine, options, std::move(reader), std::move(writer), std::move(done));
  FT_RETURN_IF_ERROR(batch.run(&progress));
  return progress;
}

int run_batch(const RunBatchOptions& options) {
  catch_interrupts();
  const Result<BatchProgress> progress = run_batch_file(options);
  if (interrupt_flag().load()) {
    const std::string far = progress.ok() ? " (" + progress.value().text() + ")" : "";
    return report_interrupt("the batch" + far + "; run the same command again to go on");
  }
  if (!progress.ok()) {
    report_error(progress.status().message());
    return kExitError;
  }
  std::printf("%s; results in %s\n", progress.value().text().c_str(), options.output.c_str());
  return 0;
}

}  // namespace

void add_run_batch_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<RunBatchOptions>();
  CLI::App* command = app.add_subcommand(
      "run-batch", "Run an OpenAI batch file; run again after a stop, it goes on where it was");
  command
      ->add_option(
          "-i,--input-file", options->input,
          "JSON lines {\"custom_id\", \"method\", \"url\", \"body\"} with urls "
          "/v1/chat/completions, /v1/completions, /v1/embeddings, /v1/score and /v1/rerank")
      ->type_name(kFileType)
      ->required();
  command->add_option("-o,--output-file", options->output, "File for the results")
      ->type_name(kFileType)
      ->required();
  command
      ->add_option("--served-model-name", options->served_model_names,
                   "More names that \"model\" may have (default: --model and its folder's name)")
      ->allow_extra_args(false);
  command->add_flag("--strict-fields", options->strict_fields,
                    "Lines with fields that are unknown or have no effect are errors; they are "
                    "passed over with a warning otherwise");
  command
      ->add_option("--pooling", options->pooling,
                   "Embeddings: last, mean, cls or auto, as the model's folder says")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "last", "mean", "cls"}));
  add_speculation_metrics_flag(*command, options->metrics);
  add_speculative_flag(*command, options->speculative);
  options->engine.offline = true;
  options->engine.add_to(*command);
  command->callback([options, run] { *run = [options] { return run_batch(*options); }; });
}

}  // namespace foretoken
