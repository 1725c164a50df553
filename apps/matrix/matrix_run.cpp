#include "apps/matrix/matrix_run.h"

#include <foretoken/engine.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "apps/matrix/matrix_models.h"
#include "apps/matrix/matrix_scores.h"
#include "attention/backend.h"
#include "device/resident_memory.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxGrowth = int64_t{16} << 20;  // bytes that repeated prompts may add
constexpr int kMaxRepeats = 8;
constexpr double kLeastAcceptance = 0.3;
constexpr double kMaxAcceptance = 0.95;

struct RunOutput {
  std::vector<std::vector<int32_t>> ids;
  std::vector<TokenScores> scores;  // of the first kScoredPrompts
  RequestStats stats;
  std::string attention;
  int64_t grown_bytes = 0;     // resident, by the last of the repetitions
  int64_t resident_bytes = 0;  // behind it
};

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

// Of tokens that a cache of KV blocks has for each sequence: so few that the first time writes all
// of them, and what is resident grows no more.
constexpr int kMaxTokens = 256;

int sequences_of(size_t num_prompts) {
  if (num_prompts < 100) return 8;
  return num_prompts < 1000 ? 32 : 128;
}

EngineConfig config_of(const MatrixCell& cell, const MatrixFiles& files, size_t num_prompts) {
  EngineConfig config;
  config.model = files.target;
  config.device = cell.device;
  config.attention_backend = cell.attention == "auto" ? "" : cell.attention;
  for (const AttentionBackend* backend : attention_backends()) {
    const bool is_named = is_attention_backend(*backend, cell.attention);
    if (is_named && backend->traits().block_size > 0) {
      config.block_size = backend->traits().block_size;
    }
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
  SpeculativeConfig& drafter = config.speculative.emplace_back();
  drafter.method = cell.drafter;
  drafter.num_speculative_tokens = matrix_num_drafts(cell.drafter, options.num_drafts);
  drafter.length_policy = "fixed";
  drafter.model = matrix_draft_folder(cell.drafter, options.folder);
  return config;
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

// The same prompts again until they add no more than kMaxGrowth to the memory, as they do once
// every engine has written all of its cache; at most kMaxRepeats times.
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

Result<RunOutput> run_engine(const EngineConfig& config, const std::vector<Request>& requests,
                             bool repeat = false) {
  std::unique_ptr<Engine> engine;
  FT_RETURN_IF_ERROR(make_engine(config, &engine));
  RunOutput run;
  run.attention = engine->info().attention_backend;
  FT_RETURN_IF_ERROR(run_prompts(*engine, requests, run));
  if (repeat) FT_RETURN_IF_ERROR(repeat_prompts(*engine, requests, run));
  return run;
}

int count_differences(const RunOutput& a, const RunOutput& b) {
  int count = 0;
  for (size_t i = 0; i < a.ids.size(); ++i) count += a.ids[i] != b.ids[i] ? 1 : 0;
  return count;
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

// Names of the ops of a short run that is recorded op by op, with their kernels where they say so.
Result<Json> seen_ops(EngineConfig config, std::vector<Request> requests, const std::string& path) {
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

// What the runs of a cell say. Each of `find` has the sentence of the first thing that is wrong.
class CellReport {
 public:
  CellReport() : json_(Json::object()) {}

  void wrong(const std::string& reason) {
    if (!json_.contains("reason")) json_["reason"] = reason;
  }
  void failed(const Status& status) {
    unsupported_ = status.code() == StatusCode::kUnsupported;
    wrong(status.message());
  }
  Json& operator[](const char* name) { return json_[name]; }
  Json finish() {
    Json all = {{"verdict", !json_.contains("reason") ? "green"
                            : unsupported_            ? "unsupported"
                                                      : "red"}};
    all.update(json_);
    return all;
  }

 private:
  Json json_;
  bool unsupported_ = false;
};

void check_drafts(const MatrixCell& cell, const RunOutput& one, const RunOutput& two,
                  CellReport& report) {
  const RequestStats& stats = two.stats;
  report["num_draft_tokens"] = stats.num_draft_tokens;
  report["num_accepted_tokens"] = stats.num_accepted_tokens;
  if (one.stats.num_draft_tokens != stats.num_draft_tokens ||
      one.stats.num_accepted_tokens != stats.num_accepted_tokens) {
    report.wrong(
        "with one and with two steps in flight other numbers of tokens were drafted or "
        "accepted");
  }
  const double share = stats.num_draft_tokens == 0
                           ? 0
                           : static_cast<double>(stats.num_accepted_tokens) /
                                 static_cast<double>(stats.num_draft_tokens);
  report["acceptance"] = share;
  if (cell.quantization.empty() && (share < kLeastAcceptance || share > kMaxAcceptance)) {
    report.wrong("the acceptance lies outside 0.3 to 0.95");
  }
}

// Attention that was named beside the CPU's own, on one rank without drafts. Tokens of dialled
// checkpoints hang on few rows of the weights, and stay where attention is wrong; likelihoods do
// not.
Status check_reference(const MatrixCell& cell, const MatrixFiles& files,
                       std::vector<Request> requests, const RunOutput& plain, CellReport& report) {
  MatrixCell alone = cell;
  alone.device = "cpu";
  alone.attention = "auto";
  alone.tp = alone.pp = alone.dp = alone.dcp = 1;
  alone.ep = alone.dbo = false;
  requests.resize(std::min(requests.size(), kScoredPrompts));
  FT_ASSIGN_OR_RETURN(const RunOutput reference,
                      run_engine(config_of(alone, files, requests.size()), requests));
  const double gap = largest_gap(plain.scores, reference.scores);
  report["score_gap_to_reference"] = gap;
  if (gap > (cell.device == "cpu" ? kMaxReferenceGap : kMaxReferenceGapOfBf16)) {
    report.wrong("log-probabilities differ by up to " + std::to_string(gap) +
                 " from those of the CPU's own attention");
  }
  return {};
}

void check_scores(const MatrixCell& cell, const RunOutput& plain, const RunOutput& drafted,
                  CellReport& report) {
  const double gap = largest_gap(plain.scores, drafted.scores);
  report["score_gap_without_drafts"] = gap;
  if (gap > kMaxGap && is_batch_invariant(cell)) {
    report.wrong("log-probabilities differ by up to " + std::to_string(gap) +
                 " from those without drafts");
  }
}

Status run_all(const MatrixCell& cell, const CellRunOptions& options, CellReport& report) {
  const MatrixModel* model = find_matrix_model(cell.architecture);
  if (model == nullptr) {
    return unsupported("no synthetic checkpoint is written of " + cell.architecture);
  }
  FT_ASSIGN_OR_RETURN(
      const MatrixFiles files,
      write_matrix_files(*model, {.drafter = cell.drafter,
                                  .dtype = cell.device == "cpu" ? "float32" : "bfloat16",
                                  .size = options.size,
                                  .one_kv_head = cell.dcp > 1,
                                  .num_prompts = options.num_prompts,
                                  .folder = options.folder}));
  FT_ASSIGN_OR_RETURN(const std::vector<Request> requests, read_prompts(files, options));
  EngineConfig config = config_of(cell, files, requests.size());
  FT_ASSIGN_OR_RETURN(const RunOutput plain, run_engine(config, requests));
  report["num_prompts"] = requests.size();
  report["num_tokens"] = plain.stats.num_output_tokens;
  report["attention"] = plain.attention;
  if (cell.num_ranks() > 1 || cell.dbo) {
    MatrixCell alone = cell;
    alone.tp = alone.pp = alone.dp = alone.dcp = 1;
    alone.ep = alone.dbo = false;
    FT_ASSIGN_OR_RETURN(const RunOutput one_rank,
                        run_engine(config_of(alone, files, requests.size()), requests));
    const int differing = count_differences(one_rank, plain);
    report["texts_unlike_one_rank"] = differing;
    // Sums of ranks are rounded elsewhere: two in 200 texts.
    if (is_batch_invariant(cell) && differing * 100 > static_cast<int>(requests.size())) {
      report.wrong(std::to_string(differing) + " texts differ from those of one rank");
    }
  }
  if (options.size == "tiny" && (cell.attention != "auto" || cell.device != "cpu")) {
    FT_RETURN_IF_ERROR(check_reference(cell, files, requests, plain, report));
  }
  if (!cell.drafter.empty()) config = with_drafts(config, cell, options);
  config.steps_in_flight = 1;
  FT_ASSIGN_OR_RETURN(const RunOutput one, run_engine(config, requests));
  config.steps_in_flight = 2;
  FT_ASSIGN_OR_RETURN(const RunOutput two, run_engine(config, requests, true));
  const int differing = count_differences(plain, one) + count_differences(plain, two);
  report["texts_unlike_without_drafts"] = differing;
  report["grown_bytes"] = two.grown_bytes;
  report["resident_bytes"] = two.resident_bytes;
  if (differing > 0 && is_batch_invariant(cell)) {
    report.wrong(std::to_string(differing) + " texts differ from those without drafts");
  }
  check_scores(cell, plain, two, report);
  if (two.grown_bytes > kMaxGrowth) {
    report.wrong("each time the same prompts take more memory, " +
                 std::to_string(two.grown_bytes >> 20) + " MiB the last time");
  }
  if (!cell.drafter.empty()) check_drafts(cell, one, two, report);
  if (cell.num_ranks() == 1) {
    FT_ASSIGN_OR_RETURN(
        report["ops"],
        seen_ops(config, requests, options.folder + "/trace-" + std::to_string(getpid())));
  }
  return {};
}

}  // namespace

Json run_cell(const MatrixCell& cell, const CellRunOptions& options) {
  CellReport report;
  const Status status = run_all(cell, options, report);
  if (!status.ok()) report.failed(status);
  return report.finish();
}

}  // namespace foretoken
