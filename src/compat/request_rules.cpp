#include <string>

#include "compat/rules.h"

// What requests ask of an engine, and what is measured in place of serving any.

namespace foretoken {
namespace {

const CompatRule kRequestRules[] = {
    {"structured outputs, `--rejection-sample-method synthetic`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.structured_outputs && c.is_synthetic; },
     [](const Combination&) -> std::string {
       return "structured_outputs cannot be used with --rejection-sample-method synthetic, which "
              "accepts drafts whatever they are; start the engine with another rule";
     },
     {.is_synthetic = true, .structured_outputs = true}},
    {"`flex_mask` or `flex_score` of a request, an engine that does not ask for them",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.flex_wish.empty() && c.asks_requests.is_false(); },
     [](const Combination& c) {
       return c.flex_wish +
              ", but the engine asks no request what it sees; start it with --attention-backend "
              "flex --flex-mask 'kv <= q and request' (or --flex-score request), or leave it out";
     },
     {.asks_requests = false, .flex_wish = "flex_mask is given"}},
    {"`prompt_logprobs`, `--flex-mask` with `prompt`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.prompt_logprobs && c.whole_prompts; },
     [](const Combination&) -> std::string {
       return "prompt_logprobs say nothing where --flex-mask lets a prompt see what comes later; "
              "leave one of them out";
     },
     {.whole_prompts = true, .prompt_logprobs = true}},
    {"generated text, a model that sees later tokens",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.generates && c.bidirectional; },
     [](const Combination& c) {
       return "'" + c.architecture +
              "' reads a text from both ends and writes none; ask it for embeddings "
              "(/v1/embeddings, foretoken embed)";
     },
     {.bidirectional = true, .architecture = "BertModel", .generates = true}},
    {"numbers of each token, a model without such",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.pools_tokens && c.has_token_head.is_false(); },
     [](const Combination& c) {
       return "'" + c.architecture +
              "' makes one vector of a text here, and no numbers of each token; pool texts (task "
              "embed), or use a folder of ColBERT's form or of a class ...ForTokenClassification";
     },
     {.architecture = "BertModel", .pools_tokens = true, .has_token_head = false}},
    {"pooling, fields about tokens",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.beside_pooling.empty(); },
     [](const Combination& c) {
       return "pooling gives no tokens, so that " + c.beside_pooling +
              " cannot be used with it; leave one of the two out";
     },
     {.beside_pooling = "logprobs"}},
};

// What an engine was started without: of the ways to look at logits and texts.
const CompatRule kSamplingRules[] = {
    {"log-probabilities, `--max-logprobs 0`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.logprobs.empty() && c.gives_logprobs.is_false(); },
     [](const Combination& c) {
       return c.logprobs +
              ", but this engine gives no logprobs; start it with --max-logprobs above 0";
     },
     {.logprobs = "logprobs is 5", .gives_logprobs = false}},
    {"logits processors, `--max-processor-rows 0`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.logits_processors && c.keeps_processor_rows.is_false(); },
     [](const Combination&) -> std::string {
       return "logits_processors are given, but this engine has no rows for them; start it with "
              "--max-processor-rows above 0";
     },
     {.logits_processors = true, .keeps_processor_rows = false}},
    {"structured outputs, no tokenizer",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.structured_outputs && c.has_tokenizer.is_false(); },
     [](const Combination&) -> std::string {
       return "structured_outputs need a tokenizer, and this engine has none (no "
              "tokenizer.json, or --skip-tokenizer-init); leave the field out";
     },
     {.structured_outputs = true, .has_tokenizer = false}},
};

// Of what stands beside a model's weights, or is to be done with its texts.
const CompatRule kTextRules[] = {
    {"texts of a request, no tokenizer",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.texts.empty() && c.has_tokenizer.is_false(); },
     [](const Combination& c) {
       return c.texts +
              " need a tokenizer, and this engine has none (no tokenizer.json, or "
              "--skip-tokenizer-init); use token ids";
     },
     {.texts = "stop strings", .has_tokenizer = false}},
    {"texts that become ids, or ids texts, no tokenizer",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.converts_texts && c.has_tokenizer.is_false(); },
     [](const Combination&) -> std::string {
       return "this engine has no tokenizer (no tokenizer.json, or --skip-tokenizer-init); use "
              "token ids";
     },
     {.converts_texts = true, .has_tokenizer = false}},
    {"messages, no chat template",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.chats && c.has_chat_template.is_false(); },
     [](const Combination&) -> std::string {
       return "the model has no chat template; name one with --chat-template, or give a plain "
              "prompt";
     },
     {.chats = true, .has_chat_template = false}},
    {"gaps to fill, a vocabulary without tokens for them",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.fills_gaps && c.has_gap_tokens.is_false(); },
     [](const Combination&) -> std::string {
       return "this model has no tokens for filling gaps (such as <|fim_prefix|>); use a model "
              "that was trained for it, or /completion";
     },
     {.fills_gaps = true, .has_gap_tokens = false}},
    {"`tool_choice` \"auto\", a server that finds no calls",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.model_calls_tools && c.finds_tool_calls.is_false(); },
     [](const Combination&) -> std::string {
       return "'tool_choice' \"auto\" needs a server that looks for calls; start it without "
              "--no-enable-auto-tool-choice and --tool-call-parser none, or use \"required\", a "
              "named function or \"none\"";
     },
     {.model_calls_tools = true, .finds_tool_calls = false}},
};

// The same of queues, drafters and adapters.
const CompatRule kServingRules[] = {
    {"`priority` without `--scheduling-policy priority`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.priority != 0 && c.has_priorities.is_false(); },
     [](const Combination& c) {
       return "priority is " + std::to_string(c.priority) +
              ", but this engine runs first come, first served; start it with "
              "--scheduling-policy priority";
     },
     {.priority = 1, .has_priorities = false}},
    {"a wish about drafts without `--speculative-config`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.speculative_wish.empty() && c.drafts.is_false(); },
     [](const Combination& c) {
       return c.speculative_wish +
              ", but the engine runs without a drafter; start it with --speculative-config";
     },
     {.drafts = false, .speculative_wish = "speculative.enabled is true"}},
    {"`inspect --step-times`, an engine that does not reckon with times",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.wants_step_times && c.reckons_with_times.is_false(); },
     [](const Combination&) -> std::string {
       return "--step-times: no table is measured without a drafter and the length policy "
              "adaptive; give --speculative-config";
     },
     {.wants_step_times = true, .reckons_with_times = false}},
    {"an adapter of a request without `--enable-lora`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.adapter.empty() && c.lora.is_false(); },
     [](const Combination& c) {
       return "the request names the adapter '" + c.adapter +
              "', but the engine has none; start it with --enable-lora";
     },
     {.lora = false, .adapter = "mine"}},
    {"adapters that are loaded later, without `--enable-lora`",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.loads_adapter && c.lora.is_false(); },
     [](const Combination&) -> std::string {
       return "this engine takes no adapters; start it with --enable-lora";
     },
     {.lora = false, .loads_adapter = true}},
};

const CompatRule kMeasuringRules[] = {
    {"parts of steps, several ranks",
     StatusCode::kUnsupported,
     [](const Combination& c) {
       return c.parts_of_steps && (c.num_ranks > 1 || c.num_engines > 1);
     },
     [](const Combination&) -> std::string {
       return "parts of steps are measured on one rank; leave --tensor-parallel-size, "
              "--pipeline-parallel-size and --data-parallel-size out, or use bench decode";
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

}  // namespace

std::span<const CompatRule> request_rules() { return kRequestRules; }
std::span<const CompatRule> sampling_rules() { return kSamplingRules; }
std::span<const CompatRule> text_rules() { return kTextRules; }
std::span<const CompatRule> serving_rules() { return kServingRules; }
std::span<const CompatRule> measuring_rules() { return kMeasuringRules; }

}  // namespace foretoken
