#include <cstdio>
#include <memory>
#include <string>

#include "apps/flags/foreign_flags.h"
#include "apps/manual/completion_script.h"
#include "apps/manual/man_page.h"
#include "apps/options/commands.h"
#include "apps/options/engine_choices.h"
#include "apps/terminal/report.h"
#include "config/engine_pages.h"

namespace foretoken {
namespace {

int print(const Result<std::string>& text) {
  if (!text.ok()) {
    report_error(text.status().message());
    return kExitUsage;
  }
  std::fputs(text.value().c_str(), stdout);
  return 0;
}

// A line each, for completion scripts.
int print_model_names() {
  for (const std::string& name : model_names()) std::puts(name.c_str());
  return 0;
}

void add_fields_command(CLI::App& app, std::function<int()>* run) {
  CLI::App* fields =
      app.add_subcommand("fields", "Pages that are made of the tables of fields and names")
          ->group("");
  auto page = std::make_shared<std::string>();
  fields->add_option("page", *page, "python, docs or names")
      ->required()
      ->check(CLI::IsMember({"python", "docs", "names"}));
  fields->callback([page, run] {
    *run = [page] {
      return print(*page == "python" ? python_engine_fields()
                   : *page == "docs" ? markdown_engine_fields()
                                     : markdown_engine_names());
    };
  });
}

}  // namespace

// In no group, which hides them from --help: they are for packages, not for users.
void add_manual_commands(CLI::App& app, std::function<int()>* run) {
  CLI::App* man = app.add_subcommand("man", "The manual page, as roff")->group("");
  man->callback([&app, run] { *run = [&app] { return print(man_page(command_table(app))); }; });
  CLI::App* models =
      app.add_subcommand("model-names", "Models that --model takes by name")->group("");
  models->callback([run] { *run = print_model_names; });
  CLI::App* hints =
      app.add_subcommand("foreign-flags", "Flags of other engines, and ours for them")->group("");
  hints->callback([&app, run] { *run = [&app] { return print(all_foreign_hints(app)); }; });
  add_fields_command(app, run);
  CLI::App* completion =
      app.add_subcommand("completion", "A completion script for bash, zsh or fish")->group("");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")->required();
  completion->callback([&app, shell, run] {
    *run = [&app, shell] { return print(completion_script(*shell, command_table(app))); };
  });
}

}  // namespace foretoken
