#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/flags/flag_table.h"
#include "apps/options/commands.h"
#include "apps/options/models/default_model.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/report.h"
#include "base/log.h"
#include "convert/to_awq.h"
#include "convert/to_fp4.h"
#include "convert/to_fp8.h"
#include "convert/to_gguf.h"
#include "convert/to_gptq.h"
#include "convert/to_packed.h"
#include "hub/resolve_model.h"

namespace foretoken {
namespace {

struct Conversion {
  std::string model;
  std::string revision;
  std::string output;
  std::string type;
  std::optional<int64_t> group_size;
  std::string importance;  // path; empty: none
  bool force = false;
};

// Types of quantised Hugging Face folders; the others are those of GGUF files.
struct FolderType {
  const char* name;
  const char* description;
  bool has_group_size;
  Result<int64_t> (*write)(const std::string& folder, int64_t group_size,
                           const ConvertOptions& options);
};

template <int bits>
Result<int64_t> write_gptq(const std::string& folder, int64_t group,
                           const ConvertOptions& options) {
  return to_gptq(folder, {bits, group}, options);
}

Result<int64_t> write_awq(const std::string& folder, int64_t group, const ConvertOptions& options) {
  return to_awq(folder, group, options);
}

template <int bits, bool has_zeros>
Result<int64_t> write_packed(const std::string& folder, int64_t group,
                             const ConvertOptions& options) {
  return to_packed(folder, {bits, group, has_zeros}, options);
}

template <Fp8Form form>
Result<int64_t> write_fp8(const std::string& folder, int64_t, const ConvertOptions& options) {
  return to_fp8(folder, form, options);
}

template <Fp4Form form>
Result<int64_t> write_fp4(const std::string& folder, int64_t, const ConvertOptions& options) {
  return to_fp4(folder, form, options);
}

constexpr FolderType kFolderTypes[] = {
    {"gptq-int4", "GPTQ's 4 bits", true, write_gptq<4>},
    {"gptq-int8", "GPTQ's 8 bits", true, write_gptq<8>},
    {"awq-int4", "AWQ's 4 bits with zeros, gemm", true, write_awq},
    {"w4a16", "compressed-tensors' 4 bits", true, write_packed<4, false>},
    {"w4a16-asym", "the same with zeros", true, write_packed<4, true>},
    {"w8a16", "compressed-tensors' 8 bits", true, write_packed<8, false>},
    {"fp8", "compressed-tensors' E4M3, a scale for each output", false, write_fp8<Fp8Form::kRows>},
    {"fp8-block", "DeepSeek's E4M3, a scale for 128 x 128", false, write_fp8<Fp8Form::kBlocks>},
    {"fp8-tensor", "E4M3, a scale for each matrix", false, write_fp8<Fp8Form::kTensor>},
    {"modelopt-fp8", "ModelOpt's E4M3, a scale for each output", false,
     write_fp8<Fp8Form::kModelOptRows>},
    {"nvfp4", "compressed-tensors' E2M1, E4M3 scales for 16", false, write_fp4<Fp4Form::kNvfp4>},
    {"modelopt-nvfp4", "the same as ModelOpt has it", false, write_fp4<Fp4Form::kModelOptNvfp4>},
    {"mxfp4", "compressed-tensors' E2M1, powers of two for 32", false, write_fp4<Fp4Form::kMxfp4>}};
constexpr int64_t kGroupSize = 128;

// Null for types of GGUF files.
const FolderType* find_folder_type(const std::string& name) {
  for (const FolderType& type : kFolderTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

// Names of those with a group size, or of all, with commas between.
std::string folder_types(bool with_group_size) {
  std::string names;
  for (const FolderType& type : kFolderTypes) {
    if (with_group_size && !type.has_group_size) continue;
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

Status check_flags(const Conversion& given) {
  const FolderType* type = find_folder_type(given.type);
  if (!given.importance.empty() && type != nullptr) {
    return invalid_argument("--imatrix is for GGUF files, not for --type " + given.type +
                            "; remove --imatrix");
  }
  if (!given.group_size || (type != nullptr && type->has_group_size)) return {};
  return invalid_argument("--group-size is for --type " + folder_types(true) + ", not for " +
                          given.type + "; remove --group-size");
}

Result<int64_t> write(const std::string& folder, const Conversion& given,
                      const ConvertOptions& options) {
  const FolderType* type = find_folder_type(given.type);
  if (type == nullptr) return to_gguf(folder, *find_gguf_recipe(given.type), options);
  return type->write(folder, given.group_size.value_or(kGroupSize), options);
}

int fail(const Status& status) {
  report_error(status.message());
  return kExitError;
}

int convert(const Conversion& given) {
  init_logging("info");
  catch_interrupts();
  const Status flags = check_flags(given);
  if (!flags.ok()) return fail(flags);
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
  if (!given.importance.empty()) {
    auto importance = ImportanceMatrix::open(given.importance);
    if (!importance.ok()) return fail(importance.status());
    options.importance = std::move(importance).value();
  }
  const Result<int64_t> bytes = write(folder.value(), given, options);
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
  CLI::App* command =
      app.add_subcommand("convert", "Write a model as a GGUF file or a quantised folder");
  command
      ->add_option(
          "--model,model", options->model,
          "Hugging Face folder or Hub id (org/name), or a GGUF file of any model for another type "
          "of GGUF")
      ->type_name(kModelType)
      ->required();
  command->add_option("--revision", options->revision, "Branch, tag or commit (default: main)");
  command
      ->add_option("-o,--output", options->output,
                   "GGUF file (*.gguf) to write; with " + folder_types(false) + " a new folder")
      ->type_name(kFileType)
      ->required();
  std::vector<std::string> types;
  std::string help = "Type of the matrices";
  for (const GgufRecipe& recipe : gguf_recipes()) {
    help += std::string(types.empty() ? ": " : ", ") + std::string(recipe.name) + " (" +
            std::string(recipe.description) + ")";
    types.emplace_back(recipe.name);
  }
  help += "; a Hugging Face folder, rounded to nearest: ";
  for (const FolderType& type : kFolderTypes) {
    help +=
        std::string(&type == kFolderTypes ? "" : ", ") + type.name + " (" + type.description + ")";
    types.emplace_back(type.name);
  }
  command
      ->add_option("--group-size", options->group_size,
                   "Columns that share a scale, for " + folder_types(true) +
                       " (default: " + std::to_string(kGroupSize) + ")")
      ->check(CLI::IsMember(std::vector<int64_t>{32, 64, 128}));
  command->add_option("--type", options->type, help)->required()->check(CLI::IsMember(types));
  command
      ->add_option("--imatrix", options->importance,
                   "What the columns of matrices count, as llama-imatrix measures it (*.gguf, "
                   "*.dat); for GGUF files of few bits")
      ->type_name(kFileType);
  command->add_flag("--force", options->force, "Replace a GGUF file that exists");
  command->callback([options, run] { *run = [options] { return convert(*options); }; });
}

}  // namespace foretoken
