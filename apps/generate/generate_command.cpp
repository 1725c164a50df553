#include <memory>

#include "apps/generate/prompt_run.h"
#include "apps/options/commands.h"

namespace foretoken {

void add_generate_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<PromptRun>();
  CLI::App* command = app.add_subcommand("generate", "Generate text for prompts");
  add_source_flags(*command, *options);
  command->add_flag("--json", options->json, "One JSON object a line; statistics go to stderr");
  options->sources.sampling.add_to(*command);
  add_request_flags(*command, options->sources.request);
  options->chat_template.add_to(*command);
  command->callback([options, run] {
    finish_sources(*options);
    *run = [options] { return run_prompts(*options); };
  });
}

}  // namespace foretoken
