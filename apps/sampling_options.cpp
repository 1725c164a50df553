#include "sampling_options.h"

namespace foretoken {

void add_sampling_flags(CLI::App& app, SamplingParams& sampling) {
  const auto group = "Sampling";
  const auto with_default = [&](const char* name, auto& value, const char* help) {
    app.add_option(name, value, help)->group(group)->capture_default_str();
  };
  with_default("--max-tokens", sampling.max_tokens, "Most output tokens");
  with_default("--min-tokens", sampling.min_tokens, "No stop before so many output tokens");
  with_default("--temperature", sampling.temperature, "0: always the likeliest token");
  with_default("--top-p", sampling.top_p, "Sample from the likeliest tokens of this total");
  with_default("--top-k", sampling.top_k, "Sample from so many likeliest tokens (0 or -1: all)");
  app.add_option("--sampling-seed", sampling.seed, "Seed of every request (default: from --seed)")
      ->group(group);
  app.add_option("--stop", sampling.stop, "String that ends the text; may be repeated")
      ->group(group)
      ->allow_extra_args(false);
  app.add_option("--stop-token-ids", sampling.stop_token_ids, "Token ids that end it, as 1,2,3")
      ->group(group)
      ->allow_extra_args(false)
      ->delimiter(',');
  app.add_flag("--ignore-eos", sampling.ignore_eos, "Go on after the model's end token")
      ->group(group);
  app.add_flag("--include-stop-str-in-output", sampling.include_stop_str_in_output,
               "Keep the stop string in the text")
      ->group(group);
  app.add_flag("--skip-special-tokens,!--no-skip-special-tokens", sampling.skip_special_tokens,
               "Leave special tokens out of the text (default: on)")
      ->group(group);
}

}  // namespace foretoken
