#include "apps/matrix/matrix_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr double kLeastAcceptance = 0.3;
constexpr double kMaxAcceptance = 0.95;

int count_differences(const RunOutput& a, const RunOutput& b) {
  int count = 0;
  for (size_t i = 0; i < a.ids.size(); ++i) count += a.ids[i] != b.ids[i] ? 1 : 0;
  return count;
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
    if (status.code() == StatusCode::kInvalidArgument) json_["refused"] = true;
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

void check_scores(const MatrixCell& cell, const RunOutput& plain, const RunOutput& drafted,
                  CellReport& report) {
  const double gap = largest_gap(plain.scores, drafted.scores);
  report["score_gap_without_drafts"] = gap;
  if (gap > kMaxGap && is_batch_invariant(cell)) {
    report.wrong("log-probabilities differ by up to " + std::to_string(gap) +
                 " from those without drafts");
  }
}

// Runs without drafts, which cells share.
class PlainRuns {
 public:
  Result<const RunOutput*> of(MatrixCell cell, const MatrixFiles& files,
                              const std::vector<Request>& requests) {
    cell.row = 0;
    cell.drafter.clear();
    const std::string name =
        cell_id(cell) + " " + std::to_string(requests.size()) + " " + files.target;
    auto found = runs_.find(name);
    if (found == runs_.end()) {
      FT_ASSIGN_OR_RETURN(RunOutput run,
                          run_engine(config_of(cell, files, requests.size()), requests));
      found = runs_.emplace(name, std::move(run)).first;
    }
    return &found->second;
  }

 private:
  std::map<std::string, RunOutput> runs_;
};

// One cell, beside what others have left in `plain_runs`.
class CellRun {
 public:
  CellRun(const MatrixCell& cell, const CellRunOptions& options, const CellWatch& watch,
          PlainRuns& plain_runs)
      : cell_(cell), options_(options), watch_(watch), plain_runs_(plain_runs) {}

  Json run() {
    const Status status = run_all();
    if (!status.ok()) report_.failed(status);
    return report_.finish();
  }

 private:
  Status run_all() {
    watch_.begins("writing checkpoints");
    FT_ASSIGN_OR_RETURN(files_, write_cell_files(cell_, options_));
    FT_ASSIGN_OR_RETURN(requests_, read_prompts(files_, options_));
    watch_.begins("without drafts");
    FT_ASSIGN_OR_RETURN(plain_, plain_runs_.of(cell_, files_, requests_));
    report_["num_prompts"] = requests_.size();
    report_["num_tokens"] = plain_->stats.num_output_tokens;
    report_["attention"] = plain_->attention;
    FT_RETURN_IF_ERROR(check_one_rank());
    FT_RETURN_IF_ERROR(check_reference());
    FT_RETURN_IF_ERROR(check_portable());
    FT_RETURN_IF_ERROR(check_drafter());
    if (cell_.num_ranks() > 1) return {};
    watch_.begins("op by op");
    const EngineConfig config =
        with_drafts(config_of(cell_, files_, requests_.size()), cell_, options_);
    FT_ASSIGN_OR_RETURN(
        report_["ops"],
        seen_ops(config, requests_, options_.folder + "/trace-" + std::to_string(getpid())));
    return {};
  }

  Status check_one_rank() {
    if (cell_.num_ranks() == 1 && !cell_.dbo) return {};
    watch_.begins("on one rank");
    FT_ASSIGN_OR_RETURN(const RunOutput* one_rank,
                        plain_runs_.of(on_one_rank(cell_), files_, requests_));
    const int differing = count_differences(*one_rank, *plain_);
    report_["texts_unlike_one_rank"] = differing;
    // Sums of ranks are rounded elsewhere: two in 200 texts.
    if (is_batch_invariant(cell_) && differing * 100 > static_cast<int>(requests_.size())) {
      report_.wrong(std::to_string(differing) + " texts differ from those of one rank");
    }
    return {};
  }

  size_t num_reference_prompts() const {
    const bool is_own = cell_.attention == "auto" && is_on_reference(cell_);
    const auto asked = static_cast<size_t>(options_.num_reference_prompts);
    return std::min(requests_.size(), options_.size != "tiny" ? asked
                                      : is_own                ? 0
                                                              : kScoredPrompts);
  }

  // Attention that was named beside the CPU's own, on one rank without drafts. Tokens of dialled
  // checkpoints hang on few rows of the weights, and stay where attention is wrong; likelihoods do
  // not.
  Status check_reference() {
    if (num_reference_prompts() == 0) return {};
    watch_.begins("on the CPU");
    MatrixCell alone = on_one_rank(cell_);
    alone.device = kReferenceDevice;
    alone.attention = "auto";
    std::vector<Request> requests = requests_;
    requests.resize(num_reference_prompts());
    FT_ASSIGN_OR_RETURN(const RunOutput* reference, plain_runs_.of(alone, files_, requests));
    const double gap = largest_gap(plain_->scores, reference->scores);
    report_["score_gap_to_reference"] = gap;
    if (gap > (is_on_reference(cell_) ? kMaxReferenceGap : kMaxReferenceGapOfBf16)) {
      report_.wrong("log-probabilities differ by up to " + std::to_string(gap) +
                    " from those of the CPU's own attention");
    }
    return {};
  }

  // On a GPU families that are batch-invariant give equal bits, which shows a fault of one position
  // where the CPU's rounding hides it; of others the gap is told. Expressions are computed by
  // kernels of their own, so that their partner is one.
  Status check_portable() {
    if (is_on_reference(cell_)) return {};
    watch_.begins("with portable attention");
    MatrixCell partner = on_one_rank(cell_);
    partner.stands_in_for.clear();
    FT_ASSIGN_OR_RETURN(const RunOutput* own, plain_runs_.of(partner, files_, requests_));
    const bool has_expressions = partner.attention.find('(') != std::string::npos;
    const bool is_latent = find_matrix_model(cell_.architecture)->latent;
    partner.attention = has_expressions ? "flex(kv <= q; )"
                        : is_latent     ? "portable_mla"
                                        : "portable";
    FT_ASSIGN_OR_RETURN(const RunOutput* other, plain_runs_.of(partner, files_, requests_));
    const double gap = largest_gap(own->scores, other->scores);
    report_["score_gap_to_portable"] = gap;
    if (gap > kMaxGap && is_batch_invariant(cell_)) {
      report_.wrong("log-probabilities differ by up to " + std::to_string(gap) + " from those of " +
                    partner.attention);
    }
    return {};
  }

  Status check_drafter() {
    EngineConfig config = with_drafts(config_of(cell_, files_, requests_.size()), cell_, options_);
    config.steps_in_flight = 1;
    watch_.begins("with one step in flight");
    FT_ASSIGN_OR_RETURN(const RunOutput one, run_engine(config, requests_));
    config.steps_in_flight = 2;
    watch_.begins("with two steps in flight");
    FT_ASSIGN_OR_RETURN(const RunOutput two, run_engine(config, requests_, true));
    const int differing = count_differences(*plain_, one) + count_differences(*plain_, two);
    report_["texts_unlike_without_drafts"] = differing;
    report_["grown_bytes"] = two.grown_bytes;
    report_["resident_bytes"] = two.resident_bytes;
    if (differing > 0 && is_batch_invariant(cell_)) {
      report_.wrong(std::to_string(differing) + " texts differ from those without drafts");
    }
    check_scores(cell_, *plain_, two, report_);
    if (two.grown_bytes > kMaxGrowth) {
      report_.wrong("each time the same prompts take more memory, " +
                    std::to_string(two.grown_bytes >> 20) + " MiB the last time");
    }
    if (!cell_.drafter.empty()) check_drafts(cell_, one, two, report_);
    return {};
  }

  const MatrixCell& cell_;
  const CellRunOptions& options_;
  const CellWatch& watch_;
  PlainRuns& plain_runs_;
  CellReport report_;
  MatrixFiles files_;
  std::vector<Request> requests_;
  const RunOutput* plain_ = nullptr;
};

}  // namespace

void run_cells_here(const std::vector<MatrixCell>& cells, const CellRunOptions& options,
                    const CellWatch& watch) {
  PlainRuns plain_runs;
  for (const MatrixCell& cell : cells) {
    const Clock::time_point begin = Clock::now();
    Json result = CellRun(cell, options, watch, plain_runs).run();
    result["seconds"] = std::chrono::duration<double>(Clock::now() - begin).count();
    watch.is_done(result);
  }
}

}  // namespace foretoken
