#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "dialled/dialled_chains.h"
#include "dialled/dialled_heads.h"
#include "dialled/dialled_writer.h"

namespace {

struct PromptOptions {
  int count = 0;
  foretoken::NgramDial dial;
};

// Writes prompts.jsonl: one object a prompt, with the output and the counts to expect.
foretoken::Status write_prompts(const std::string& folder, const foretoken::DialledShape& shape,
                                const PromptOptions& options) {
  const foretoken::DialledCycle cycle(shape.vocab_size, shape.seed);
  const std::string path = (std::filesystem::path(folder) / "prompts.jsonl").string();
  std::ofstream file(path, std::ios::trunc);
  for (int i = 0; i < options.count; ++i) {
    foretoken::NgramDial dial = options.dial;
    dial.seed += static_cast<uint64_t>(i);
    FT_ASSIGN_OR_RETURN(const auto prompt, foretoken::make_dialled_prompt(cycle, dial));
    const nlohmann::ordered_json line = {
        {"prompt_token_ids", prompt.ids},
        {"prompt", foretoken::dialled_text(prompt.ids)},
        {"expected_token_ids", prompt.expected_output},
        {"expected_text", foretoken::dialled_text(prompt.expected_output)},
        {"num_drafted", prompt.num_drafted},
        {"num_accepted", prompt.num_accepted}};
    file << line.dump() << "\n";
  }
  file.close();
  if (!file) return foretoken::invalid_argument("cannot write " + path);
  return {};
}

// Folders of the draft heads to write beside the checkpoint; empty: none.
struct HeadOptions {
  std::string of_kind[std::size(foretoken::kHeadKinds)];  // in their order
  std::string medusa, mlp_speculator, assistant;
  double agreement = 0.8;
  int num_modules = 1;
  int num_layers = 1;
};

foretoken::Status write_heads(const foretoken::DialledShape& shape, const HeadOptions& options) {
  for (size_t i = 0; i < std::size(foretoken::kHeadKinds); ++i) {
    const std::string& folder = options.of_kind[i];
    if (folder.empty()) continue;
    foretoken::DialledHead head;
    head.kind = foretoken::kHeadKinds[i].kind;
    head.agreement = options.agreement;
    if (foretoken::has_modules(head.kind)) head.num_modules = options.num_modules;
    if (foretoken::has_layers(head.kind)) head.num_layers = options.num_layers;
    FT_RETURN_IF_ERROR(foretoken::write_dialled_head(folder, shape, head));
  }
  using Kind = foretoken::DialledChain::Kind;
  const std::pair<Kind, std::string> chains[] = {{Kind::kMedusa, options.medusa},
                                                 {Kind::kMlp, options.mlp_speculator},
                                                 {Kind::kAssistant, options.assistant}};
  for (const auto& [kind, folder] : chains) {
    if (folder.empty()) continue;
    FT_RETURN_IF_ERROR(foretoken::write_dialled_chain(
        folder, shape, {.kind = kind, .agreement = options.agreement}));
  }
  return {};
}

void add_head_options(CLI::App* app, HeadOptions* options) {
  for (size_t i = 0; i < std::size(foretoken::kHeadKinds); ++i) {
    const std::string method = foretoken::kHeadKinds[i].method;
    app->add_option("--" + method, options->of_kind[i],
                    "Folder of a head for method " + method + " to write");
  }
  app->add_option("--head-layers", options->num_layers, "Layers of the EAGLE heads")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app->add_option("--medusa", options->medusa, "Folder of Medusa heads to write");
  app->add_option("--mlp_speculator", options->mlp_speculator,
                  "Folder of an MLP speculator to write");
  app->add_option("--gemma4_assistant", options->assistant, "Folder of an assistant to write");
  app->add_option("--head-agreement", options->agreement,
                  "Share of ids after which a head drafts what the checkpoint emits")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app->add_option("--modules", options->num_modules, "MTP modules")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
}

void add_shape_options(CLI::App* app, foretoken::DialledShape* shape, std::string* dtype) {
  app->add_option("--architecture", shape->architecture, "Name in config.json")
      ->check(CLI::IsMember(foretoken::dialled_architectures()))
      ->capture_default_str();
  app->add_option("--layers", shape->num_layers, "Number of layers")->capture_default_str();
  app->add_option("--hidden", shape->hidden_size, "Hidden size")->capture_default_str();
  app->add_option("--heads", shape->num_heads, "Query heads")->capture_default_str();
  app->add_option("--kv-heads", shape->num_kv_heads, "KV heads")->capture_default_str();
  app->add_option("--head-dim", shape->head_dim, "Size of a head")->capture_default_str();
  app->add_option("--vocab", shape->vocab_size, "Vocabulary size")->capture_default_str();
  app->add_option("--intermediate", shape->intermediate_size, "MLP size")->capture_default_str();
  app->add_option("--experts", shape->num_experts, "Experts of a mixture's layer")
      ->capture_default_str();
  app->add_option("--experts-per-token", shape->experts_per_token, "Experts of a row")
      ->capture_default_str();
  app->add_option("--expert-size", shape->expert_inner, "Width of an expert")
      ->capture_default_str();
  app->add_option("--q-rank", shape->q_rank, "Width of compressed queries (DeepSeek)")
      ->capture_default_str();
  app->add_option("--kv-rank", shape->kv_rank, "Width of compressed keys and values (DeepSeek)")
      ->capture_default_str();
  app->add_option("--rope-dim", shape->rope_dim, "Turning elements of a head (DeepSeek)")
      ->capture_default_str();
  app->add_option("--max-positions", shape->max_position_embeddings, "Longest context")
      ->capture_default_str();
  app->add_option("--seed", shape->seed, "Seed of the permutation")->capture_default_str();
  app->add_option("--agreement", shape->agreement, "Share of ids that follow the permutation")
      ->capture_default_str();
  app->add_option("--mtp-modules", shape->num_mtp_modules, "MTP modules in the checkpoint itself")
      ->check(CLI::Range(0, 16))
      ->capture_default_str();
  app->add_option("--mtp-agreement", shape->mtp_agreement, "Share of ids that those agree on")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app->add_option("--mask-id", shape->mask_id,
                  "Id of masks, in place of which a draft model drafts (pard)");
  app->add_option("--id-shift", shape->id_shift, "Places by which words stand at other ids")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--dtype", *dtype, "Type of the weights")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
}

void add_prompt_options(CLI::App* app, PromptOptions* options) {
  app->add_option("--prompts", options->count, "Prompts to write into prompts.jsonl")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--acceptance", options->dial.acceptance, "Share of n-gram drafts accepted")
      ->check(CLI::Range(0.3, 0.95))
      ->capture_default_str();
  app->add_option("--output-tokens", options->dial.num_output, "Tokens to be generated a prompt")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--num-speculative-tokens", options->dial.num_draft_tokens, "Drafts a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--prompt-lookup-min", options->dial.min_n, "Shortest n-gram")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--prompt-lookup-max", options->dial.max_n, "Longest n-gram")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--prompt-seed", options->dial.seed, "Seed of the first prompt")
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a checkpoint whose greedy output is a fixed permutation of tokens");
  std::string folder;
  std::string dtype = "float32";
  foretoken::DialledShape shape;
  PromptOptions prompts;
  HeadOptions heads;
  bool only_heads = false;
  app.add_option("folder", folder, "Model folder to write")->required();
  app.add_flag("--only-heads", only_heads, "Write the draft heads alone, not the checkpoint");
  add_shape_options(&app, &shape, &dtype);
  add_prompt_options(&app, &prompts);
  add_head_options(&app, &heads);
  CLI11_PARSE(app, argc, argv);
  shape.dtype = dtype == "bfloat16" ? foretoken::DType::kBF16 : foretoken::DType::kF32;
  if (prompts.dial.max_n < prompts.dial.min_n) prompts.dial.max_n = prompts.dial.min_n;

  foretoken::Status status;
  if (!only_heads) status = foretoken::write_dialled_checkpoint(folder, shape);
  if (status.ok()) status = write_heads(shape, heads);
  if (status.ok() && prompts.count > 0) status = write_prompts(folder, shape, prompts);
  if (!status.ok()) {
    std::fprintf(stderr, "foretoken-dial: %s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
