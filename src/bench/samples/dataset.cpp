#include "bench/samples/dataset.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

namespace foretoken::bench {
namespace {

using nlohmann::ordered_json;

constexpr int kCustomOutputLen = 256;
constexpr int kMinShareGptLen = 4;
constexpr int kMaxShareGptPrompt = 1024;
constexpr int kMaxShareGptTotal = 2048;
constexpr const char* kSonnetTask = "Pick as many lines as you can from these poem lines:\n";

std::string as_chat(const std::string& prompt) {
  return ordered_json::array({{{"role", "user"}, {"content", prompt}}})
      .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// Fills in the prompt: a chat, the text that the template makes of it, or the plain text.
Status set_prompt(const DatasetSpec& spec, const TokenCoder* coder, const FilePrompt& entry,
                  Sample* sample) {
  const bool chat = !entry.messages_json.empty();
  if (spec.keeps_messages) {
    sample->messages_json = chat ? entry.messages_json : as_chat(entry.prompt);
  } else if (coder != nullptr && coder->render_chat && (chat || !spec.skip_chat_template)) {
    FT_ASSIGN_OR_RETURN(sample->text,
                        coder->render_chat(chat ? entry.messages_json : as_chat(entry.prompt),
                                           spec.chat_template_kwargs));
  } else if (chat) {
    return invalid_argument(
        "prompts with \"messages\" need --backend openai-chat, or a --tokenizer folder with a chat "
        "template");
  } else {
    sample->text = entry.prompt;
  }
  if (coder == nullptr) return {};
  std::string text = sample->text.empty() ? entry.prompt : sample->text;
  if (chat && spec.keeps_messages && coder->render_chat) {
    FT_ASSIGN_OR_RETURN(text, coder->render_chat(entry.messages_json, spec.chat_template_kwargs));
  }
  FT_ASSIGN_OR_RETURN(sample->prompt_len, coder->count(text));
  return {};
}

Result<int> sharegpt_output_len(const DatasetSpec& spec, const TokenCoder* coder,
                                const FilePrompt& entry) {
  if (spec.sharegpt_output_len) return *spec.sharegpt_output_len;
  if (coder == nullptr) {
    return invalid_argument(
        "the lengths of sharegpt's answers need a --tokenizer; or give --sharegpt-output-len");
  }
  return coder->count(entry.answer);
}

// vLLM's rule, so that the results are comparable.
bool sharegpt_fits(const DatasetSpec& spec, const Sample& sample) {
  const bool short_output = !spec.sharegpt_output_len && sample.output_len < kMinShareGptLen;
  return sample.prompt_len >= kMinShareGptLen && !short_output &&
         sample.prompt_len <= kMaxShareGptPrompt &&
         sample.prompt_len + sample.output_len <= kMaxShareGptTotal;
}

Result<std::vector<Sample>> sharegpt_samples(const DatasetSpec& spec, const TokenCoder* coder,
                                             const std::vector<FilePrompt>& entries) {
  std::vector<Sample> samples;
  for (const FilePrompt& entry : entries) {
    if (samples.size() == static_cast<size_t>(spec.num_prompts)) break;
    Sample sample;
    sample.text = entry.prompt;
    if (coder != nullptr) {
      FT_ASSIGN_OR_RETURN(sample.prompt_len, coder->count(entry.prompt));
    }
    FT_ASSIGN_OR_RETURN(sample.output_len, sharegpt_output_len(spec, coder, entry));
    if (coder == nullptr || sharegpt_fits(spec, sample)) samples.push_back(std::move(sample));
  }
  if (samples.empty()) {
    return invalid_argument(spec.path +
                            ": no entry has 4 to 1024 prompt tokens and at most 2048 in all");
  }
  return samples;
}

int custom_output_len(const DatasetSpec& spec, const FilePrompt& entry) {
  if (spec.name == "spec_bench") return spec.spec_bench_output_len;
  if (spec.custom_output_len && *spec.custom_output_len > 0) return *spec.custom_output_len;
  return entry.output_tokens > 0 ? entry.output_tokens : kCustomOutputLen;
}

Result<std::vector<Sample>> line_samples(const DatasetSpec& spec, const TokenCoder* coder,
                                         const std::vector<FilePrompt>& entries) {
  std::vector<Sample> samples;
  for (const FilePrompt& entry : entries) {
    if (samples.size() == static_cast<size_t>(spec.num_prompts)) break;
    if (spec.custom_output_len == -1 && entry.output_tokens == 0) {
      return invalid_argument(spec.path +
                              ": --custom-output-len -1 needs \"output_tokens\" in every entry");
    }
    Sample sample;
    FT_RETURN_IF_ERROR(set_prompt(spec, coder, entry, &sample));
    sample.output_len = custom_output_len(spec, entry);
    samples.push_back(std::move(sample));
  }
  return samples;
}

Result<std::vector<Sample>> file_samples(const DatasetSpec& spec, const std::string& file_text,
                                         const TokenCoder* coder) {
  if (spec.name == "sonnet") {
    if (coder == nullptr) return invalid_argument("--dataset-name sonnet needs a --tokenizer");
    return sonnet_samples(spec.sonnet, spec.num_prompts, spec.seed, file_text, *coder);
  }
  const PromptFormat format = spec.name == "sharegpt"     ? PromptFormat::kShareGpt
                              : spec.name == "spec_bench" ? PromptFormat::kSpecBench
                                                          : PromptFormat::kJsonLines;
  FT_ASSIGN_OR_RETURN(std::vector<FilePrompt> entries,
                      read_prompts(format, spec.path, file_text, spec.spec_bench_category));
  std::mt19937_64 generator(spec.seed);
  if (!spec.disable_shuffle) std::shuffle(entries.begin(), entries.end(), generator);
  FT_ASSIGN_OR_RETURN(std::vector<Sample> samples, format == PromptFormat::kShareGpt
                                                       ? sharegpt_samples(spec, coder, entries)
                                                       : line_samples(spec, coder, entries));
  const size_t num_all = samples.size();
  const auto wanted = static_cast<size_t>(spec.num_prompts);
  while (!spec.no_oversample && samples.size() < wanted) {
    samples.push_back(samples[samples.size() - num_all]);
  }
  return samples;
}

}  // namespace

const std::vector<std::string>& dataset_names() {
  static const std::vector<std::string> names = {
      "random", "sharegpt", "custom", "sonnet", "spec_bench", "prefix_repetition", "prompts"};
  return names;
}

bool reads_file(const std::string& dataset_name) {
  return dataset_name != "random" && dataset_name != "prefix_repetition";
}

Result<std::vector<Sample>> sonnet_samples(const SonnetOptions& options, int num_prompts,
                                           uint64_t seed, const std::string& text,
                                           const TokenCoder& coder) {
  const std::vector<std::string> lines = text_lines(text);
  double num_ids = 0;
  for (const std::string& line : lines) {
    FT_ASSIGN_OR_RETURN(const auto ids, coder.encode(line + "\n", false));
    num_ids += static_cast<double>(ids.size());
  }
  if (num_ids == 0) return invalid_argument("the text for --dataset-name sonnet has no lines");
  const double per_line = num_ids / static_cast<double>(lines.size());
  FT_ASSIGN_OR_RETURN(const int task_len, coder.count(kSonnetTask));
  const auto lines_for = [&](int length) {
    return static_cast<int>(std::max(0.0, std::round((length - task_len) / per_line)));
  };
  const int num_lines = lines_for(options.input_len);
  const int num_shared =
      std::min({lines_for(options.prefix_len), num_lines, static_cast<int>(lines.size())});
  if (num_lines == 0) {
    return invalid_argument("--sonnet-input-len must be more than the " + std::to_string(task_len) +
                            " tokens of the task before the lines");
  }
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<size_t> any(0, lines.size() - 1);
  std::vector<Sample> samples(static_cast<size_t>(num_prompts));
  for (Sample& sample : samples) {
    sample.text = kSonnetTask;
    for (int i = 0; i < num_lines; ++i) {
      sample.text += lines[i < num_shared ? static_cast<size_t>(i) : any(generator)] + "\n";
    }
    sample.output_len = options.output_len;
    FT_ASSIGN_OR_RETURN(sample.prompt_len, coder.count(sample.text));
  }
  return samples;
}

Result<std::vector<Sample>> make_samples(const DatasetSpec& spec, const std::string& file_text,
                                         const TokenCoder* coder) {
  if (spec.name == "random") {
    return random_samples(spec.random, spec.num_prompts, spec.seed, coder);
  }
  if (spec.name == "prefix_repetition") {
    return prefix_samples(spec.prefix, spec.num_prompts, spec.seed, coder, spec.disable_shuffle);
  }
  return file_samples(spec, file_text, coder);
}

}  // namespace foretoken::bench
