#include "apps/options/sampling_options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "apps/options/engine_options.h"
#include "config/sampling_fields.h"
#include "config/sampling_ranges.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/sampling_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kGroup = "Sampling";

// Adds the flag of a field to one app; it writes the field of that name.
class FlagWriter {
 public:
  FlagWriter(CLI::App& app, const SamplingFlags& flags, json& fields)
      : app_(app), flags_(flags), fields_(fields) {}

  void add(const SamplingField& field) {
    visit_sampling_member(field, SamplingParams(),
                          [&](const auto& is) { add(field, sampling_flag(field), is); });
  }

 private:
  template <class T>
  CLI::Option* value(const SamplingField& field, const std::string& flag, const std::string& note) {
    return app_
        .add_option_function<T>(
            flag, [&fields = fields_, name = field.name](const T& value) { fields[name] = value; },
            field.help + note)
        ->group(kGroup);
  }

  // Range and default, as the help shows them.
  std::string note(const SamplingField& field, const std::string& is) const {
    const bool shows = !std::string_view(range_text(field.range)).starts_with("at least");
    const std::string range = shows ? "in " + range_text(field.range) + "; " : "";
    const bool of_model = field.model_name != nullptr;
    return " (" + range + "default: " + (of_model ? "the model's, else " : "") + is + ")";
  }

  void add(const SamplingField& field, const std::string& flag, int is) {
    const bool is_length = field.name == std::string_view("max_tokens");
    value<int32_t>(field, flag,
                   note(field, is_length ? flags_.max_tokens_default : std::to_string(is)));
  }

  void add(const SamplingField& field, const std::string& flag, float is) {
    value<double>(field, flag, note(field, fmt::format("{}", is)));
  }

  // "--x,!--no-x" where the default is true.
  void add(const SamplingField& field, const std::string& flag, bool is) {
    app_.add_flag_function(
            is ? flag + ",!--no-" + flag.substr(2) : flag,
            [&fields = fields_, name = field.name](int64_t count) { fields[name] = count > 0; },
            field.help + std::string(is ? " (default: on)" : ""))
        ->group(kGroup);
  }

  void add(const SamplingField& field, const std::string& flag, const std::optional<int>&) {
    value<int32_t>(field, flag, "");
  }

  void add(const SamplingField& field, const std::string& flag, const std::optional<uint64_t>&) {
    value<uint64_t>(field, flag, "")->check(seed_number());
  }

  void add(const SamplingField& field, const std::string& flag, const std::vector<std::string>&) {
    value<std::vector<std::string>>(field, flag, "; may be repeated")->allow_extra_args(false);
  }

  void add(const SamplingField& field, const std::string& flag, const std::vector<int32_t>&) {
    value<std::vector<int32_t>>(field, flag, "")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->check(token_id())
        ->type_name("ID,ID,...");
  }

  void add(const SamplingField& field, const std::string& flag,
           const std::optional<std::vector<int32_t>>&) {
    add(field, flag, std::vector<int32_t>());
  }

  void add(const SamplingField& field, const std::string& flag,
           const std::vector<std::pair<int32_t, float>>&) {
    app_.add_option_function<std::string>(
            flag,
            [&fields = fields_, name = field.name, flag](const std::string& text) {
              const Result<json> biases = parse_ordered_json_object(text, flag);
              if (!biases.ok()) throw CLI::ValidationError(biases.status().message());
              fields[name] = biases.value();
            },
            fmt::format("{} (values in {})", field.help, range_text(field.range)))
        ->group(kGroup)
        ->type_name("JSON");
  }

  CLI::App& app_;
  const SamplingFlags& flags_;
  json& fields_;
};

}  // namespace

void SamplingFlags::add_to(CLI::App& app) {
  FlagWriter writer(app, *this, fields);
  std::vector<SamplingField> rows(sampling_fields().begin(), sampling_fields().end());
  std::ranges::stable_sort(rows, {}, &SamplingField::group);
  for (const SamplingField& field : rows) writer.add(field);
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

void add_speculation_metrics_flag(CLI::App& app, std::string& level) {
  app.add_option("--per-request-spec-decode-metrics", level,
                 "Speculation of each request in its answer's \"metrics\": none or summary")
      ->group("Speculation")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "summary", "detailed"}));
}

Result<bool> wants_speculation_metrics(const std::string& level) {
  if (level != "detailed") return level == "summary";
  return unsupported(
      "--per-request-spec-decode-metrics detailed: counts of single steps are not kept; use "
      "summary");
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
