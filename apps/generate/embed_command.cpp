#include <memory>

#include "apps/generate/prompt_run.h"
#include "apps/options/commands.h"

namespace foretoken {

void add_embed_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<PromptRun>();
  CLI::App* command = app.add_subcommand("embed", "Embeddings of prompts, one JSON object a line");
  add_source_flags(*command, *options);
  Request& request = options->sources.request;
  auto pooling = std::make_shared<std::string>("auto");
  command
      ->add_option(
          "--pooling", *pooling,
          "Which state of the prompt: last, mean (of all), cls (the first) or auto, as the "
          "model's folder says")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "last", "mean", "cls"}));
  command->add_flag("--normalize,!--no-normalize", request.normalize,
                    "Scale embeddings to length 1 (default: on)");
  command
      ->add_option("--prompt-name", options->sources.prompt_name,
                   "Which of the model's own prompts (config_sentence_transformers.json) goes "
                   "before the texts: query, document, ... (default: the model's usual one)")
      ->type_name("NAME");
  add_request_flags(*command, request);
  options->chat_template.add_to(*command);
  options->json = true;
  command->callback([options, pooling, run] {
    finish_sources(*options);
    options->sources.request.pooling = parse_pooling(*pooling).value();
    *run = [options] { return run_prompts(*options); };
  });
}

}  // namespace foretoken
