#include <cstdio>
#include <memory>

#include "apps/flags/flag_table.h"
#include "apps/options/commands.h"
#include "apps/terminal/download_progress_text.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "base/log.h"
#include "hub/resolve_model.h"

namespace foretoken {
namespace {

struct DownloadOptions {
  std::string model;
  std::string revision;
  std::string folder;
  std::string log_level = "info";
};

int download(const DownloadOptions& given) {
  init_logging(given.log_level.c_str());
  catch_interrupts();
  HubOptions options = hub_options_from_environment();
  options.revision = given.revision;
  if (!given.folder.empty()) options.cache_folder = given.folder;
  options.cancel = &interrupt_flag();
  ProgressLine line;
  DownloadProgressText text;
  options.progress = [&](const std::string& file, int64_t done, int64_t total) {
    text.note(file, done, total);
    if (line.due()) line.show(text.text(given.model));
  };
  const Result<std::string> folder = resolve_model_folder(given.model, options);
  line.clear();
  if (interrupt_flag().load()) {
    return report_interrupt("while downloading; running again resumes");
  }
  if (!folder.ok()) {
    report_error(folder.status().message());
    return kExitError;
  }
  std::printf("%s\n", folder.value().c_str());
  return 0;
}

}  // namespace

void add_download_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<DownloadOptions>();
  CLI::App* command = app.add_subcommand(
      "download", "Fetch a model of the Hugging Face Hub into the cache and print its folder");
  command->add_option("--model,model", options->model, "Hub id: org/name or org/name@revision")
      ->required();
  command->add_option("--revision", options->revision, "Branch, tag or commit (default: main)");
  command
      ->add_option("--download-dir", options->folder,
                   "Cache folder (default: as HF_HUB_CACHE or HF_HOME say)")
      ->type_name(kFolderType);
  command->add_option("--log-level", options->log_level, "Least level logged to stderr")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}));
  command->callback([options, run] { *run = [options] { return download(*options); }; });
}

}  // namespace foretoken
