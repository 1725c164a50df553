#include <string>

#include "compat/rules.h"

// What requests ask of an engine, and what is measured in place of serving any.

namespace foretoken {

std::vector<CompatRule> request_rules() {
  return {
      {"structured outputs, `--rejection-sample-method synthetic`",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return c.structured_outputs && c.is_synthetic; },
       [](const Combination&) -> std::string {
         return "structured_outputs cannot be used with --rejection-sample-method synthetic, which "
                "accepts drafts whatever they are; start the engine with another rule";
       },
       {.is_synthetic = true, .structured_outputs = true}},
      {"logits processors, several ranks",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return c.logits_processors && c.num_ranks > 1; },
       [](const Combination&) -> std::string {
         return "logits_processors run on the host of rank 0 alone and cannot be used with several "
                "ranks; start the engine with --tensor-parallel-size 1 and "
                "--pipeline-parallel-size 1";
       },
       {.logits_processors = true, .num_ranks = 2}},
      {"`prompt_logprobs`, `--flex-mask` with `prompt`",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return c.prompt_logprobs && c.whole_prompts; },
       [](const Combination&) -> std::string {
         return "prompt_logprobs say nothing where --flex-mask lets a prompt see what comes later; "
                "leave one of them out";
       },
       {.whole_prompts = true, .prompt_logprobs = true}},
      {"pooling, fields about tokens",
       StatusCode::kInvalidArgument,
       [](const Combination& c) { return !c.beside_pooling.empty(); },
       [](const Combination& c) {
         return "pooling gives no tokens, so that " + c.beside_pooling +
                " cannot be used with it; leave one of the two out";
       },
       {.beside_pooling = "logprobs"}},
  };
}

std::vector<CompatRule> measuring_rules() {
  return {
      {"parts of steps, several ranks",
       StatusCode::kUnsupported,
       [](const Combination& c) { return c.parts_of_steps && c.num_ranks > 1; },
       [](const Combination&) -> std::string {
         return "parts of steps are measured on one rank; leave --tensor-parallel-size and "
                "--pipeline-parallel-size out, or use bench decode";
       },
       {.num_ranks = 2, .parts_of_steps = true}},
      {"parts of steps, `--enable-dbo`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return c.parts_of_steps && c.two_lanes; },
       [](const Combination&) -> std::string {
         return "parts of steps are measured in one lane of rows; leave --enable-dbo out, or use "
                "bench decode";
       },
       {.two_lanes = true, .parts_of_steps = true}},
      {"parts of steps, `--profile`",
       StatusCode::kUnsupported,
       [](const Combination& c) { return c.parts_of_steps && c.has_profile; },
       [](const Combination&) -> std::string {
         return "--profile tells of an engine's steps, and parts of steps are none; use bench "
                "decode";
       },
       {.parts_of_steps = true, .has_profile = true}},
      {"`bench host`, several ranks",
       StatusCode::kUnsupported,
       [](const Combination& c) { return c.host_alone && (c.num_ranks > 1 || c.num_engines > 1); },
       [](const Combination&) -> std::string {
         return "bench host measures one rank; leave --tensor-parallel-size, "
                "--pipeline-parallel-size and --data-parallel-size out";
       },
       {.num_ranks = 2, .host_alone = true}},
  };
}

}  // namespace foretoken
