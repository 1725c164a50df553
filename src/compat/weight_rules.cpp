#include <string>

#include "compat/rules.h"

// What is made of weights while they are loaded, and adapters beside them.

namespace foretoken {
namespace {

const CompatRule kFileRules[] = {
    {"`--load-format safetensors`, a GGUF file",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.load_format == "safetensors" && c.gguf; },
     [](const Combination& c) {
       return "--load-format safetensors does not read '" + c.files +
              "', a GGUF file; use auto or gguf";
     },
     {.files = "model.gguf", .load_format = "safetensors", .gguf = true}},
    {"`--load-format gguf`, other files",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.load_format == "gguf" && c.gguf.is_false(); },
     [](const Combination& c) {
       return "--load-format gguf reads a file *.gguf, which --model '" + c.files +
              "' is not; name one, or use --load-format auto";
     },
     {.files = "folder", .load_format = "gguf", .gguf = false}},
};

const CompatRule kWeightRules[] = {
    {"`--quantization`, `--load-format dummy-*`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.quantization.empty() && !c.quantised_format.empty(); },
     [](const Combination& c) {
       return "--quantization " + c.quantization + " rounds weights, but --load-format " +
              c.quantised_format + " has quantised ones; remove one of the two";
     },
     {.quantization = "fp8", .quantised_format = "dummy-q8_0"}},
    {"`--quantization` of files, weights that are not quantised",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return !c.named_method.empty() && c.files_method == ""; },
     [](const Combination& c) {
       return c.method_flag + " " + c.named_method + ": the weights of " + c.files +
              " are not quantised; remove it, or use fp8, which rounds them while they are "
              "loaded";
     },
     {.files = "the model",
      .method_flag = "--quantization",
      .named_method = "awq",
      .files_method = ""}},
    {"`--quantization`, weights that are quantised otherwise",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return !c.named_method.empty() && c.files_method && c.named_method != *c.files_method;
     },
     [](const Combination& c) {
       return c.method_flag + " " + c.named_method + ": the weights of " + c.files +
              " are quantised by " + *c.files_method +
              "; remove it, or name the model as it was before";
     },
     {.files = "the model",
      .method_flag = "--quantization",
      .named_method = "awq",
      .files_method = "gptq"}},
    {"`--activation-scheme`, a model without FP8 matrices",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.rounds_activations && c.num_fp8_matrices == 0; },
     [](const Combination& c) {
       return "--activation-scheme rounds what FP8 matrices are multiplied with, and " + c.files +
              " has none that stay FP8 on " +
              (c.opened != nullptr ? c.opened->name() : "this device") +
              "; leave it out, or with weights that are not quantised add --quantization fp8";
     },
     {.files = "the model", .rounds_activations = true, .num_fp8_matrices = 0}},
};

const CompatRule kAdapterRules[] = {
    {"`--lora-modules` without `--enable-lora`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.lora_modules && c.lora.is_false(); },
     [](const Combination&) -> std::string {
       return "--lora-modules names adapters; add --enable-lora";
     },
     {.lora = false, .lora_modules = true}},
    {"`--lora-dtype`, `--dtype`",
     StatusCode::kUnsupported,
     [](const Combination& c) {
       return c.dtype && !c.lora_dtype.empty() && c.lora_dtype != "auto" &&
              c.lora_dtype != dtype_name(*c.dtype);
     },
     [](const Combination& c) {
       return "--lora-dtype " + c.lora_dtype + ": adapters are kept in the model's type, " +
              dtype_name(*c.dtype) + "; leave it out";
     },
     {.dtype = DType::kBF16, .lora_dtype = "float16"}},
    {"`--enable-lora`, a model with matrices of other names",
     StatusCode::kUnsupported,
     [](const Combination& c) { return c.lora && !c.matrix_outside_layers.empty(); },
     [](const Combination& c) {
       return "--enable-lora: adapters of matrices named as '" + c.matrix_outside_layers +
              "' are not applied; start without it, or use another model";
     },
     {.lora = true, .matrix_outside_layers = "encoder.weight"}},
    {"`--lora-extra-vocab-size`, a model that caps its logits or whose output matrix has biases or "
     "rows of length one",
     StatusCode::kUnsupported,
     [](const Combination& c) {
       return c.added_ids.value_or(0) > 0 && c.logits_are_plain.is_false();
     },
     [](const Combination& c) {
       return "--lora-extra-vocab-size " + std::to_string(*c.added_ids) + ": the logits of " +
              c.architecture +
              " are capped, have biases or are of rows of length one, where ids of adapters alone "
              "cannot be told apart; leave it out";
     },
     {.architecture = "M", .added_ids = 8, .logits_are_plain = false}},
    {"`--lora-extra-vocab-size` above the model's own vocabulary",
     StatusCode::kInvalidArgument,
     [](const Combination& c) { return c.own_ids && c.added_ids.value_or(0) > *c.own_ids; },
     [](const Combination& c) {
       return "--lora-extra-vocab-size " + std::to_string(*c.added_ids) + " is more than the " +
              std::to_string(*c.own_ids) + " ids that the model has; use --lora-extra-vocab-size " +
              std::to_string(*c.own_ids) + " at most";
     },
     {.added_ids = 9, .own_ids = 8}},
};

}  // namespace

std::span<const CompatRule> file_rules() { return kFileRules; }
std::span<const CompatRule> weight_rules() { return kWeightRules; }
std::span<const CompatRule> adapter_rules() { return kAdapterRules; }

}  // namespace foretoken
