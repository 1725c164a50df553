#include "apps/matrix/matrix_engine.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "attention/backend.h"
#include "device/resident_memory.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxRepeats = 8;

// Checkpoints of a kind stand apart.
std::string folder_of(const MatrixCell& cell, const CellRunOptions& options) {
  return options.folder + "/" + cell.architecture + "-" + cell.device + "-" + options.size +
         (cell.dcp > 1 ? "-shared-heads" : "");
}

// Of tokens that a cache of KV blocks has for each sequence: so few that the first time writes all
// of them, and what is resident grows no more.
constexpr int kMaxTokens = 256;

int sequences_of(size_t num_prompts) {
  if (num_prompts < 100) return 8;
  return num_prompts < 1000 ? 32 : 128;
}

// All prompts once. Aborted where an output failed.
Status run_prompts(Engine& engine, const std::vector<Request>& requests, RunOutput& run) {
  for (RequestOutput& output : engine.generate(requests)) {
    FT_RETURN_IF_ERROR(output.status);
    run.ids.push_back(std::move(output.token_ids));
    if (!output.logprobs.empty()) run.scores.push_back(std::move(output.logprobs));
    run.stats += output.stats;
  }
  return {};
}

Status repeat_prompts(Engine& engine, const std::vector<Request>& requests, RunOutput& run) {
  for (int time = 0; time < kMaxRepeats; ++time) {
    const int64_t before = resident_bytes();
    RunOutput again;
    FT_RETURN_IF_ERROR(run_prompts(engine, requests, again));
    run.resident_bytes = resident_bytes();
    run.grown_bytes = run.resident_bytes - before;
    if (again.ids != run.ids) return aborted("the same prompts gave other texts when repeated");
    if (run.grown_bytes <= kMaxGrowth) break;
  }
  return {};
}

// Names of events of the thread "device ops".
std::set<std::string> op_names(const Json& events) {
  std::set<std::string> names;
  int64_t ops = -1;
  for (const Json& event : events) {
    if (event.value("name", "") == "thread_name" &&
        event["args"].value("name", "") == "device ops") {
      ops = event.value("tid", int64_t{-1});
    } else if (event.value("tid", int64_t{-2}) == ops) {
      names.insert(event.value("name", ""));
    }
  }
  return names;
}

}  // namespace

Result<MatrixFiles> write_cell_files(const MatrixCell& cell, const CellRunOptions& options) {
  const MatrixModel* model = find_matrix_model(cell.architecture);
  if (model == nullptr) {
    return unsupported("no synthetic checkpoint is written of " + cell.architecture);
  }
  return write_matrix_files(*model, {.drafter = cell.drafter,
                                     .dtype = is_on_reference(cell) ? "float32" : "bfloat16",
                                     .size = options.size,
                                     .one_kv_head = cell.dcp > 1,
                                     .num_prompts = options.num_prompts,
                                     .folder = folder_of(cell, options)});
}

Result<std::vector<Request>> read_prompts(const MatrixFiles& files, const CellRunOptions& options) {
  std::ifstream file(files.prompts);
  std::vector<Request> requests;
  for (std::string line; std::getline(file, line);) {
    Request& request = requests.emplace_back();
    request.prompt_token_ids = Json::parse(line).at("prompt_token_ids").get<std::vector<int32_t>>();
    request.sampling.max_tokens = options.max_tokens;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
  }
  if (requests.empty()) return not_found(files.prompts + " holds no prompts");
  ask_for_scores(requests);
  return requests;
}

EngineConfig config_of(const MatrixCell& cell, const MatrixFiles& files, size_t num_prompts) {
  EngineConfig config;
  config.model = files.target;
  config.device = cell.device;
  config.attention_backend = cell.attention == "auto" ? "" : cell.attention;
  if (const AttentionBackend* backend = named_attention(cell.attention)) {
    if (backend->traits().block_size > 0) config.block_size = backend->traits().block_size;
  }
  config.cudagraph_mode = cell.graph_mode;
  config.kv_cache_dtype = cell.kv_cache_dtype;
  config.quantization = cell.quantization;
  config.max_model_len = kMaxTokens;
  config.max_num_seqs = sequences_of(num_prompts);
  config.num_gpu_blocks_override = config.max_num_seqs * kMaxTokens / config.block_size;
  config.enable_prefix_caching = false;
  config.disable_log_stats = true;
  config.skip_tokenizer_init = true;
  config.cpu_threads = cell.num_ranks() > 1 ? 1 : 0;
  config.parallel.tensor_parallel_size = cell.tp;
  config.parallel.pipeline_parallel_size = cell.pp;
  config.parallel.data_parallel_size = cell.dp;
  config.parallel.decode_context_parallel_size = cell.dcp;
  config.parallel.enable_expert_parallel = cell.ep;
  config.parallel.enable_dbo = cell.dbo;
  config.parallel.dbo_decode_token_threshold = config.parallel.dbo_prefill_token_threshold = 2;
  return config;
}

EngineConfig with_drafts(EngineConfig config, const MatrixCell& cell,
                         const CellRunOptions& options) {
  if (cell.drafter.empty()) return config;
  SpeculativeConfig& drafter = config.speculative.emplace_back();
  drafter.method = cell.drafter;
  drafter.num_speculative_tokens = matrix_num_draft_tokens(cell.drafter, options.num_draft_tokens);
  drafter.length_policy = "fixed";
  drafter.model = matrix_draft_folder(cell.drafter, folder_of(cell, options));
  return config;
}

MatrixCell on_one_rank(MatrixCell cell) {
  cell.tp = cell.pp = cell.dp = cell.dcp = 1;
  cell.ep = cell.dbo = false;
  return cell;
}

Result<RunOutput> run_engine(const EngineConfig& config, const std::vector<Request>& requests,
                             bool repeat) {
  std::unique_ptr<Engine> engine;
  FT_RETURN_IF_ERROR(make_engine(config, &engine));
  RunOutput run;
  run.attention = engine->info().attention_backend;
  FT_RETURN_IF_ERROR(run_prompts(*engine, requests, run));
  if (repeat) FT_RETURN_IF_ERROR(repeat_prompts(*engine, requests, run));
  return run;
}

Result<nlohmann::ordered_json> seen_ops(EngineConfig config, std::vector<Request> requests,
                                        const std::string& path) {
  config.profile = path;
  config.cudagraph_mode = "NONE";
  requests.resize(std::min<size_t>(requests.size(), 2));
  FT_RETURN_IF_ERROR(run_engine(config, requests).status());
  std::ifstream file(path);
  const Json trace = Json::parse(file, nullptr, false);
  std::set<std::string> names;
  if (trace.is_object() && trace.contains("traceEvents")) names = op_names(trace["traceEvents"]);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return Json(names);
}

}  // namespace foretoken
