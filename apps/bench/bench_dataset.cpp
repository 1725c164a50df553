#include "apps/bench/bench_dataset.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <random>

#include "apps/bench/bench_run.h"
#include "apps/flags/flag_table.h"
#include "apps/options/engine_options.h"
#include "apps/options/models/default_model.h"
#include "apps/terminal/file_text.h"
#include "bench/samples/prompt_files.h"

namespace foretoken {
namespace {

using bench::FilePrompt;
using bench::PromptFormat;

constexpr int kDefaultInputLen = 512;
constexpr int kDefaultOutputLen = 128;
constexpr const char* kDatasetPrompts = "bench/prompts/prompts.jsonl";

int input_len(const DatasetOptions& options) {
  return options.input_len > 0 ? options.input_len : kDefaultInputLen;
}

int output_len(const DatasetOptions& options) {
  return options.output_len > 0 ? options.output_len : kDefaultOutputLen;
}

std::vector<BenchPrompt> random_prompts(const DatasetOptions& options, int vocab_size) {
  std::mt19937_64 generator(options.seed);
  std::vector<BenchPrompt> prompts(static_cast<size_t>(options.num_prompts));
  for (BenchPrompt& prompt : prompts) {
    prompt.output_len = output_len(options);
    for (int i = 0; i < input_len(options); ++i) {
      prompt.ids.push_back(static_cast<int32_t>(generator() % static_cast<uint64_t>(vocab_size)));
    }
  }
  return prompts;
}

// Prompts of about input_len tokens out of lines drawn at random.
Result<std::vector<FilePrompt>> draw_lines(const Engine& engine, const DatasetOptions& options,
                                           const std::string& text) {
  const std::vector<std::string> lines = bench::text_lines(text);
  std::vector<FilePrompt> pairs;
  std::mt19937_64 generator(options.seed);
  for (int i = 0; i < options.num_prompts && !lines.empty(); ++i) {
    FilePrompt pair;
    for (size_t num_ids = 0; num_ids < static_cast<size_t>(input_len(options));) {
      pair.prompt += lines[generator() % lines.size()] + "\n";
      std::vector<int32_t> ids;
      FT_RETURN_IF_ERROR(engine.encode(pair.prompt, true, &ids));
      num_ids = ids.size();
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

// Each line a prompt.
Result<std::vector<FilePrompt>> prompts_of_lines(const std::string& path, const std::string& text) {
  std::vector<FilePrompt> prompts;
  for (const std::string& line : bench::text_lines(text)) prompts.emplace_back().prompt = line;
  if (!prompts.empty()) return prompts;
  return invalid_argument(path + " has no line with a prompt");
}

Result<std::vector<FilePrompt>> read_pairs(const Engine& engine, const DatasetOptions& options) {
  std::string path = options.path;
  if (path.empty() && options.name == "prompts") path = bundled_path(kDatasetPrompts);
  if (path.empty()) {
    return invalid_argument(
        options.name == "prompts"
            ? std::string(kDatasetPrompts) + " was not found; name a file with --dataset-path"
            : "--dataset-name " + options.name + " needs its file: --dataset-path FILE");
  }
  FT_ASSIGN_OR_RETURN(const std::string text, read_input_file(path));
  if (options.name == "sonnet") return draw_lines(engine, options, text);
  if (options.name == "lines") return prompts_of_lines(path, text);
  const PromptFormat format = options.name == "sharegpt"     ? PromptFormat::kShareGpt
                              : options.name == "spec_bench" ? PromptFormat::kSpecBench
                                                             : PromptFormat::kJsonLines;
  return bench::read_prompts(format, path, text, options.category);
}

// Kept when it fits the context.
Result<std::vector<BenchPrompt>> encode_pairs(const Engine& engine, const DatasetOptions& options,
                                              const std::vector<FilePrompt>& pairs) {
  std::vector<BenchPrompt> prompts;
  for (const FilePrompt& pair : pairs) {
    BenchPrompt prompt;
    const bool chat = !pair.messages_json.empty();
    std::string text = pair.prompt;
    if (chat) FT_RETURN_IF_ERROR(engine.render_chat(pair.messages_json, "", &text));
    FT_RETURN_IF_ERROR(engine.encode(text, !chat, &prompt.ids));
    if (options.name != "sonnet" && options.input_len > 0) {
      prompt.ids.resize(std::min(prompt.ids.size(), static_cast<size_t>(options.input_len)));
    }
    prompt.output_len = output_len(options);
    if (options.output_len == 0 && pair.output_tokens > 0) prompt.output_len = pair.output_tokens;
    if (options.output_len == 0 && !pair.answer.empty()) {
      std::vector<int32_t> answer;
      FT_RETURN_IF_ERROR(engine.encode(pair.answer, false, &answer));
      prompt.output_len = static_cast<int>(answer.size());
    }
    const int64_t length = static_cast<int64_t>(prompt.ids.size()) + prompt.output_len;
    const bool fits = length <= engine.info().max_model_len && prompt.output_len > 0;
    if (fits && !prompt.ids.empty()) prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace

void DatasetOptions::add_to(CLI::App& app) {
  const char* group = "Prompts";
  app.add_option("--dataset-name", name,
                 "prompts (bundled), custom (JSON lines with \"prompt\" or \"messages\"), "
                 "lines (of a text, each a prompt), sharegpt, spec_bench, sonnet (lines of a text, "
                 "drawn) or "
                 "random (ids)")
      ->group(group)
      ->capture_default_str()
      ->check(CLI::IsMember(
          {"prompts", "custom", "lines", "sharegpt", "spec_bench", "sonnet", "random"}));
  app.add_option("--dataset-path", path, "File of the prompts (default: the bundled ones)")
      ->group(group)
      ->type_name(kFileType);
  app.add_option("--spec-bench-category", category, "Only this category of a spec_bench file")
      ->group(group);
  app.add_option("--input-len", input_len,
                 "Tokens of a prompt; longer ones are cut (default: 512 for random and sonnet, "
                 "else as they are)")
      ->group(group)
      ->check(at_least(1));
  app.add_option("--output-len", output_len,
                 "Tokens of an output (default: as the file says or answers, else 128)")
      ->group(group)
      ->check(at_least(1));
  app.add_option("--num-prompts", num_prompts, "Prompts; a shorter file is repeated")
      ->group(group)
      ->capture_default_str()
      ->check(at_least(1));
}

Result<std::vector<BenchPrompt>> load_bench_prompts(const Engine& engine,
                                                    const DatasetOptions& options) {
  const int max_model_len = engine.info().max_model_len;
  if (options.name == "random") {
    FT_RETURN_IF_ERROR(check_bench_lengths(input_len(options), output_len(options), engine.info()));
    return random_prompts(options, engine.info().vocab_size);
  }
  FT_ASSIGN_OR_RETURN(const std::vector<FilePrompt> pairs, read_pairs(engine, options));
  FT_ASSIGN_OR_RETURN(std::vector<BenchPrompt> prompts, encode_pairs(engine, options, pairs));
  if (prompts.empty()) {
    return invalid_argument(fmt::format(
        "none of {} prompts fits max_model_len {} with its output; lower --input-len or "
        "--output-len",
        pairs.size(), max_model_len));
  }
  if (options.name == "sharegpt") {
    std::mt19937_64 generator(options.seed);
    std::shuffle(prompts.begin(), prompts.end(), generator);
  }
  const size_t num_all = prompts.size();
  const auto wanted = static_cast<size_t>(options.num_prompts);
  prompts.resize(std::min(num_all, wanted));
  while (prompts.size() < wanted) prompts.push_back(prompts[prompts.size() - num_all]);
  return prompts;
}

}  // namespace foretoken
