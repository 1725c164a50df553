#include "apps/matrix/matrix_models.h"

#include <unistd.h>

#include <filesystem>

#include "apps/terminal/child_process.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

constexpr const char* kAgreement = "0.7";
// Of blocks of which the first draft alone can be right.
constexpr const char* kBlockAgreement = "0.9";
constexpr int kBlockDrafts = 2;
constexpr int kChainDrafts = 4;  // that foretoken-dial writes heads for

bool drafts_blocks(const DrafterEntry& drafter) {
  return drafter.traits.drafts_at_once && drafter.traits.drafts_apart;
}

// For up to eight ranks, with heads as the kernels of Hopper take them.
const std::vector<std::string> kTiny = {"--layers",   "2", "--hidden",   "64", "--heads", "8",
                                        "--kv-heads", "4", "--head-dim", "64"};
const std::vector<std::string> kMixture = {"--experts",     "8",  "--experts-per-token", "2",
                                           "--expert-size", "256"};
const std::vector<std::string> kLatent = {"--layers",  "2",   "--hidden",   "64", "--heads", "8",
                                          "--kv-rank", "512", "--rope-dim", "64"};
const std::vector<std::string> kLlama8b = {
    "--layers", "32",         "--hidden", "4096",           "--heads", "32",      "--kv-heads",
    "8",        "--head-dim", "128",      "--intermediate", "14336",   "--vocab", "128256"};

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<std::string> kDeepseekR1 = joined(
    {"--layers", "3", "--hidden", "7168", "--heads", "128", "--head-dim", "128", "--vocab",
     "129280", "--intermediate", "18432", "--q-rank", "1536", "--kv-rank", "512"},
    {"--rope-dim", "64", "--experts", "64", "--experts-per-token", "8", "--expert-size", "2048"});

const std::vector<std::string>& shape_of(const MatrixModel& model, const std::string& size) {
  if (size == "8b" && !model.latent && model.num_experts == 0) return kLlama8b;
  return size == "r1" && model.latent ? kDeepseekR1 : model.shape;
}

// A folder that is whole: it appears under its name when everything is written, whoever else writes
// it meanwhile. `flag`: of foretoken-dial, for the head that is written instead of a checkpoint.
Status write_folder(const std::vector<std::string>& arguments, const std::string& folder,
                    const std::string& flag = "") {
  if (std::filesystem::exists(folder)) return {};
  const std::string part = folder + ".part-" + std::to_string(getpid());
  std::error_code error;
  std::filesystem::remove_all(part, error);
  std::vector<std::string> command = joined({sibling_program("foretoken-dial"), part}, arguments);
  if (!flag.empty()) command = joined(command, {"--only-heads", flag, part});
  const ProcessResult result = run_process(command, {.limit = std::chrono::seconds(600)});
  if (result.end != ProcessEnd::kExit || result.code != 0) {
    std::filesystem::remove_all(part, error);
    const std::string said = result.err.substr(0, result.err.find_last_not_of('\n') + 1);
    return not_found("foretoken-dial, which writes the checkpoints of the matrix, failed: " +
                     (said.empty() ? "it must stand beside foretoken" : said));
  }
  std::filesystem::rename(part, folder, error);
  if (!error) return {};
  const std::string reason = error.message();
  std::filesystem::remove_all(part, error);
  if (std::filesystem::exists(folder)) return {};
  return invalid_argument("cannot rename " + part + ": " + reason);
}

std::vector<std::string> with_value(std::vector<std::string> shape, const std::string& flag,
                                    const std::string& value) {
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (shape[i] == flag) shape[i + 1] = value;
  }
  return shape;
}

Status write_head(const std::vector<std::string>& shape, const std::string& drafter,
                  const std::string& folder) {
  const std::string head = matrix_draft_folder(drafter, folder);
  if (head.empty() || std::filesystem::exists(head)) return {};
  const DrafterEntry& entry = *find_drafter(drafter).value();
  const char* agreement = drafts_blocks(entry) ? kBlockAgreement : kAgreement;
  if (!entry.reads_model()) {
    return write_folder(joined(shape, {"--head-agreement", agreement}), head, "--" + drafter);
  }
  std::vector<std::string> model = with_value(shape, "--layers", "1");
  if (entry.mask_id != nullptr) model = joined(model, {"--mask-id", "1"});
  return write_folder(joined(model, {"--agreement", agreement}), head);
}

constexpr AttentionDemand kHeads = {.dtype = DType::kBF16, .head_dim = 64, .has_full_layers = true};
constexpr AttentionDemand kLatents = {
    .dtype = DType::kBF16, .head_dim = 576, .has_full_layers = true, .value_dim = 512};

AttentionDemand with_softcap() {
  AttentionDemand demand = kHeads;
  demand.softcap = 50;
  return demand;
}

}  // namespace

std::span<const MatrixModel> matrix_models() {
  static const std::vector<MatrixModel> models = {
      {"LlamaForCausalLM", false, 0, kHeads, kTiny, "8b"},
      {"Gemma2ForCausalLM", false, 0, with_softcap(), kTiny},
      {"MixtralForCausalLM", false, 8, kHeads, joined(kTiny, kMixture)},
      {"DeepseekV3ForCausalLM", true, 8, kLatents, joined(kLatent, kMixture)}};
  return models;
}

const MatrixModel* find_matrix_model(const std::string& architecture) {
  for (const MatrixModel& model : matrix_models()) {
    if (model.architecture == architecture) return &model;
  }
  return nullptr;
}

std::string matrix_draft_folder(const std::string& drafter, const std::string& folder) {
  const Result<const DrafterEntry*> entry = find_drafter(drafter);
  if (!entry.ok() || !entry.value()->traits.reads_files) return {};
  return folder + "/" + drafter;
}

int matrix_num_draft_tokens(const std::string& drafter, int wanted) {
  const Result<const DrafterEntry*> entry = find_drafter(drafter);
  if (!entry.ok()) return wanted;
  if (entry.value()->read_chain != nullptr) return std::min(wanted, kChainDrafts);
  return drafts_blocks(*entry.value()) ? std::min(wanted, kBlockDrafts) : wanted;
}

Result<MatrixFiles> write_matrix_files(const MatrixModel& model, const MatrixFilesWish& wish) {
  std::error_code error;
  std::filesystem::create_directories(wish.folder, error);
  if (error) return invalid_argument("cannot make " + wish.folder + ": " + error.message());
  std::vector<std::string> shape = shape_of(model, wish.size);
  if (wish.one_kv_head) shape = with_value(shape, "--kv-heads", "1");
  shape = joined({"--architecture", model.architecture, "--dtype", wish.dtype}, shape);
  const std::string count = std::to_string(wish.num_prompts);
  const MatrixFiles files = {wish.folder + "/target-" + count,
                             wish.folder + "/target-" + count + "/prompts.jsonl"};
  FT_RETURN_IF_ERROR(
      write_folder(joined(shape, {"--prompts", count, "--acceptance", kAgreement}), files.target));
  FT_RETURN_IF_ERROR(write_head(shape, wish.drafter, wish.folder));
  return files;
}

}  // namespace foretoken
