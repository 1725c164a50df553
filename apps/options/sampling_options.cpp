#include "apps/options/sampling_options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "apps/options/engine_options.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/sampling_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kGroup = "Sampling";

std::string field_of(const std::string& flag) {
  std::string field = flag.substr(2);
  std::replace(field.begin(), field.end(), '-', '_');
  return field;
}

// Adds value flags to one app; each writes the field of its name.
class FlagWriter {
 public:
  FlagWriter(CLI::App& app, json& fields) : app_(app), fields_(fields) {}

  template <class T>
  CLI::Option* value(const char* flag, const std::string& help) {
    return value_as<T>(field_of(flag), flag, help);
  }

  template <class T>
  CLI::Option* value_as(const std::string& field, const char* flag, const std::string& help) {
    return app_
        .add_option_function<T>(
            flag, [&fields = fields_, field](const T& value) { fields[field] = value; }, help)
        ->group(kGroup);
  }

  void list_of_ids(const char* flag, const char* help) {
    value<std::vector<int32_t>>(flag, help)
        ->allow_extra_args(false)
        ->delimiter(',')
        ->check(token_id())
        ->type_name("ID,ID,...");
  }

  void strings(const char* flag, const char* help) {
    value<std::vector<std::string>>(flag, help)->allow_extra_args(false);
  }

  // `flag` as "--x,!--no-x".
  void yes_or_no(const char* flag, const char* field, const char* help) {
    app_.add_flag_function(
            flag,
            [&fields = fields_, name = std::string(field)](int64_t count) {
              fields[name] = count > 0;
            },
            help)
        ->group(kGroup);
  }

 private:
  CLI::App& app_;
  json& fields_;
};

void add_number_flags(FlagWriter& add, const std::string& max_tokens_default) {
  const SamplingParams is;
  const auto count = [&](const char* flag, const char* help, int value) {
    add.value<int32_t>(flag, fmt::format("{} (default: {})", help, value));
  };
  const auto number = [&](const char* flag, const char* help, float value) {
    add.value<double>(flag, fmt::format("{} (default: the model's, else {})", help, value));
  };
  count("--n", "Choices for each prompt", is.n);
  add.value<int32_t>("--max-tokens",
                     "Most output tokens (default: the model's, else " + max_tokens_default + ")");
  count("--min-tokens", "No stop before so many output tokens", is.min_tokens);
  number("--temperature", "0: always the likeliest token", is.temperature);
  number("--top-p", "Sample from the likeliest tokens of this total, in (0, 1]", is.top_p);
  add.value<int32_t>("--top-k",
                     "Sample from so many likeliest tokens; 0 or -1: all (default: the model's, "
                     "else all)");
  number("--min-p", "Least share of the likeliest token's probability, in [0, 1]", is.min_p);
  number("--presence-penalty", "On tokens of the output, once each, in [-2, 2]",
         is.presence_penalty);
  number("--frequency-penalty", "On tokens of the output, for each use, in [-2, 2]",
         is.frequency_penalty);
  number("--repetition-penalty", "On tokens of prompt and output, in [1e-6, 1e6]; 1: none",
         is.repetition_penalty);
  add.value_as<uint64_t>("seed", "--sampling-seed",
                         "Seed of every request (default: drawn from --seed)")
      ->check(seed_number());
  add.value<int32_t>("--logprobs",
                     "Log-probabilities of each token and of so many likeliest ones; -1: all");
  add.value<int32_t>("--prompt-logprobs", "The same for the tokens of the prompt");
}

void add_token_flags(FlagWriter& add, CLI::App& app, json& fields) {
  app.add_option_function<std::string>(
         "--logit-bias",
         [&fields](const std::string& text) {
           const Result<json> bias = parse_ordered_json_object(text, "--logit-bias");
           if (!bias.ok()) throw CLI::ValidationError(bias.status().message());
           fields["logit_bias"] = bias.value();
         },
         "Biases in [-100, 100] by token id, as JSON: {\"42\": -100}")
      ->group(kGroup)
      ->type_name("JSON");
  add.strings("--bad-words", "Text that never appears; may be repeated");
  add.list_of_ids("--allowed-token-ids", "The only token ids that can be sampled");
  add.strings("--stop", "String that ends the text; may be repeated");
  add.list_of_ids("--stop-token-ids", "Token ids that end the text");
  add.yes_or_no("--ignore-eos", "ignore_eos", "Go on after the model's end token");
  add.yes_or_no("--include-stop-str-in-output", "include_stop_str_in_output",
                "Keep the stop string in the text");
  add.yes_or_no("--detokenize,!--no-detokenize", "detokenize",
                "Make text of the tokens (default: on)");
  add.yes_or_no("--skip-special-tokens,!--no-skip-special-tokens", "skip_special_tokens",
                "Leave special tokens out of the text (default: on)");
  add.yes_or_no("--spaces-between-special-tokens,!--no-spaces-between-special-tokens",
                "spaces_between_special_tokens", "Spaces around kept special tokens (default: on)");
}

}  // namespace

void SamplingFlags::add_to(CLI::App& app) {
  FlagWriter add(app, fields);
  add_number_flags(add, max_tokens_default);
  add_token_flags(add, app, fields);
}

Status SamplingFlags::apply(SamplingParams* sampling) const {
  JsonFields reader(fields, "");
  read_sampling_fields(reader, sampling);
  read_logprob_counts(reader, sampling);
  return reader.status();
}

Status SamplingFlags::check() const {
  SamplingParams sampling;
  // The model's own limit may be above the default one.
  if (!fields.contains("max_tokens")) sampling.max_tokens = INT32_MAX;
  FT_RETURN_IF_ERROR(apply(&sampling));
  return check_sampling_ranges(sampling);
}

void add_speculative_flag(CLI::App& app, SpeculativeParams& params) {
  app.add_option_function<std::string>(
         "--speculative",
         [&params](const std::string& text) {
           const std::string what = "--speculative";
           const Result<json> object = parse_ordered_json_object(text, what);
           if (!object.ok()) throw CLI::ValidationError(object.status().message());
           const Status status = read_speculative_params(object.value(), what, &params);
           if (!status.ok()) throw CLI::ValidationError(status.message());
         },
         "Speculation of requests that say nothing of it: {\"enabled\": false}, "
         "{\"method\": \"ngram\", \"num_speculative_tokens\": 2} (default: the engine's first "
         "drafter)")
      ->group("Speculation")
      ->type_name("JSON");
}

void add_request_flags(CLI::App& app, Request& request) {
  app.add_option("--priority", request.priority,
                 "Lower runs first, with --scheduling-policy priority (default: 0)")
      ->group(kGroup);
  app.add_option("--truncate-prompt-tokens", request.truncate_prompt_tokens,
                 "Keep only the last ones of a prompt; -1: as many as fit (default: all)")
      ->group(kGroup);
  app.add_option("--cache-salt", request.cache_salt,
                 "Share prefix-cache entries only with requests of the same salt")
      ->group(kGroup);
  app.add_flag("--add-special-tokens,!--no-add-special-tokens", request.add_special_tokens,
               "BOS and the like around prompts that no chat template made (default: on)")
      ->group(kGroup);
  add_speculative_flag(app, request.speculative);
}

}  // namespace foretoken
