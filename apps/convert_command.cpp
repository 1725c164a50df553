#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "commands.h"
#include "convert/to_gguf.h"
#include "default_model.h"
#include "hub/resolve_model.h"
#include "interrupt.h"
#include "progress_line.h"
#include "report.h"

namespace foretoken {
namespace {

struct Conversion {
  std::string model;
  std::string revision;
  std::string output;
  std::string type;
  bool force = false;
};

int fail(const Status& status) {
  report_error(status.message());
  return kExitError;
}

int convert(const Conversion& given) {
  init_logging("info");
  catch_interrupts();
  HubOptions hub = hub_options_from_environment();
  hub.revision = given.revision;
  hub.cancel = &interrupt_flag();
  const auto folder = resolve_model_folder(bundled_or_given(given.model), hub);
  if (!folder.ok()) return fail(folder.status());
  ProgressLine line;
  ConvertOptions options;
  options.output = given.output;
  options.replaces = given.force;
  options.cancelled = &interrupt_flag();
  options.progress = [&](int64_t done, int64_t total) {
    if (!line.due()) return;
    line.show("converting: " + std::to_string(done >> 20) + " of " + std::to_string(total >> 20) +
              " MiB");
  };
  const Result<int64_t> bytes = to_gguf(folder.value(), *find_gguf_recipe(given.type), options);
  line.clear();
  if (interrupt_flag().load()) return report_interrupt("while converting; nothing was written");
  if (!bytes.ok()) return fail(bytes.status());
  std::printf("%s: %.1f MiB\n", given.output.c_str(),
              static_cast<double>(bytes.value()) / (1 << 20));
  return 0;
}

}  // namespace

void add_convert_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<Conversion>();
  CLI::App* command = app.add_subcommand("convert", "Write a model as a GGUF file");
  command
      ->add_option("--model,model", options->model,
                   "Hugging Face folder or Hub id (org/name) of a Llama, Mistral, Qwen 2 or 3")
      ->required();
  command->add_option("--revision", options->revision, "Branch, tag or commit (default: main)");
  command->add_option("-o,--output", options->output, "File to write, *.gguf")->required();
  std::vector<std::string> types;
  std::string help = "Type of the matrices";
  for (const GgufRecipe& recipe : gguf_recipes()) {
    help += std::string(types.empty() ? ": " : ", ") + std::string(recipe.name) + " (" +
            std::string(recipe.description) + ")";
    types.emplace_back(recipe.name);
  }
  command->add_option("--type", options->type, help)->required()->check(CLI::IsMember(types));
  command->add_flag("--force", options->force, "Replace a file that exists");
  command->callback([options, run] { *run = [options] { return convert(*options); }; });
}

}  // namespace foretoken
