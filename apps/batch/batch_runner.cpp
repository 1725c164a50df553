#include "apps/batch/batch_runner.h"

#include <algorithm>
#include <chrono>

#include "serve/answer/served_drafters.h"
#include "serve/fields/json_fields.h"
#include "serve/flow/serve_context.h"
#include "serve/openai/score_format.h"
#include "serve/responses/responses_format.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// As a server gives it.
std::string make_answer_id(const BatchLine& line) {
  if (line.form == BatchForm::kScores) return make_openai_id("score");
  if (line.form == BatchForm::kRanking) return make_openai_id("rerank");
  if (line.form == BatchForm::kResponse) return "resp_" + make_openai_id("").substr(1);
  switch (line.kind) {
    case OpenAiKind::kChat:
      return make_openai_id("chatcmpl");
    case OpenAiKind::kCompletion:
      return make_openai_id("cmpl");
    default:
      return make_openai_id("embd");
  }
}

// Most drafts of a step where the lines tell of speculation, otherwise 0.
int num_spec_tokens(const BatchReport& report, const SpeculativeParams& wanted) {
  if (!report.speculation_metrics) return 0;
  return served_drafters(report.drafters, wanted.method).num_speculative_tokens;
}

ordered_json error_entry(const BatchLine& line, const Status& status) {
  ordered_json entry = {{"code", http_status(status)}, {"message", status.message()}};
  if (line.custom_id.empty()) entry["line"] = line.number;
  return entry;
}

}  // namespace

ordered_json BatchJob::output_line(const BatchReport& report) const {
  ordered_json output;
  output["id"] = make_openai_id("batch_req");
  output["custom_id"] = line.custom_id.empty() ? ordered_json() : ordered_json(line.custom_id);
  ordered_json response = {{"status_code", http_status(error)},
                           {"request_id", make_openai_id("req")}};
  if (error.ok()) {
    response["body"] =
        answer({.id = make_answer_id(line),
                .model = request.model.empty() ? report.model : request.model,
                .created = unix_seconds(),
                .num_spec_tokens = num_spec_tokens(report, request.requests.front().speculative),
                .synthetic_acceptance = report.synthetic_acceptance});
  } else {
    response["body"] = openai_error(error);
  }
  output["response"] = std::move(response);
  output["error"] = error.ok() ? ordered_json() : error_entry(line, error);
  return output;
}

ordered_json BatchJob::answer(OpenAiLabel label) const {
  std::vector<const OutputSum*> all;
  for (const OutputSum& sum : sums) all.push_back(&sum);
  if (asked_response) {
    ResponsesRequest asked = *asked_response;
    asked.chat = request;
    ResponseStore none(0);
    ResponsesFormat format(std::move(asked), label.id, label.model, label.created, none);
    return ordered_json::parse(format.whole(all));
  }
  if (labels) return ordered_json::parse(LabelScoreFormat(*labels, std::move(label)).whole(all));
  if (!score) return openai_response(request, all, prompts, label);
  const bool pairs = line.form == BatchForm::kScores;
  return ordered_json::parse(pairs ? ScoreFormat(*score, std::move(label)).whole(all)
                                   : RerankFormat(*score, std::move(label)).whole(all));
}

int64_t BatchJob::num_output_tokens() const {
  int64_t sum = 0;
  for (const OutputSum& output : sums) sum += output.stats().num_output_tokens;
  return sum;
}

BatchRunner::~BatchRunner() {
  abort_all();
  std::unique_lock lock(mutex_);
  news_.wait(lock, [this] {
    return std::all_of(jobs_.begin(), jobs_.end(),
                       [](const auto& running) { return running->num_open == 0; });
  });
}

Status BatchRunner::parse_response(BatchJob& job) const {
  FT_ASSIGN_OR_RETURN(job.asked_response,
                      parse_responses_request(job.line.body, defaults_, ResponseStore(0)));
  if (job.asked_response->background) {
    return invalid_argument(
        "'background' is for a server; a batch waits for all answers, remove it");
  }
  job.asked_response->store = false;
  job.request = std::move(job.asked_response->chat);
  return {};
}

Status BatchRunner::parse(BatchJob& job) const {
  const BatchLine& line = job.line;
  if (line.form == BatchForm::kResponse) return parse_response(job);
  if (line.form == BatchForm::kOfItsKind) {
    FT_ASSIGN_OR_RETURN(job.request, parse_openai_request(line.kind, line.body, defaults_));
    return {};
  }
  if (line.form == BatchForm::kScores && JsonFields(line.body, "").has("label_token_ids")) {
    FT_ASSIGN_OR_RETURN(job.labels, parse_label_scoring(line.body, engine_, defaults_, true));
    job.request = job.labels->texts;
    return {};
  }
  FT_ASSIGN_OR_RETURN(job.score, line.form == BatchForm::kScores
                                     ? parse_score_request(line.body, defaults_)
                                     : parse_rerank_request(line.body, defaults_));
  FT_RETURN_IF_ERROR(prepare_comparison(engine_, &*job.score));
  job.request = job.score->embeddings;
  return {};
}

Status BatchRunner::prepare(BatchJob& job) {
  FT_RETURN_IF_ERROR(job.line.error);
  FT_RETURN_IF_ERROR(parse(job));
  job.line.body = nullptr;
  if (job.request.stream) {
    return invalid_argument("'stream' is for a server; a batch has no streams, remove it");
  }
  FT_RETURN_IF_ERROR(render_openai_prompt(engine_, &job.request));
  warning_log_.tell(job.request.warnings);
  return read_prompts(job);
}

// What answers tell of the prompts: their texts, and the ids of their tokens.
Status BatchRunner::read_prompts(BatchJob& job) const {
  const bool tells_ids = job.request.return_token_ids || job.request.tokens_as_token_ids;
  for (Request& request : job.request.requests) {
    std::string prompt = request.prompt;
    std::vector<int32_t>& ids = request.prompt_token_ids;
    if (!ids.empty() && job.request.echo) FT_RETURN_IF_ERROR(engine_.decode(ids, false, &prompt));
    if (ids.empty() && tells_ids && !prompt.empty()) {
      FT_RETURN_IF_ERROR(encode_prompt_of(engine_, request, &ids));
    }
    if (job.request.echo) job.prompts.push_back(std::move(prompt));
  }
  return {};
}

void BatchRunner::start(BatchLine line) {
  Running& running = *jobs_.emplace_back(std::make_unique<Running>());
  running.job = std::make_unique<BatchJob>();
  BatchJob& job = *running.job;
  job.line = std::move(line);
  job.error = prepare(job);
  const size_t num_requests = job.error.ok() ? job.request.requests.size() : 0;
  for (size_t i = 0; i < num_requests; ++i) {
    job.sums.emplace_back(std::max(job.request.requests[i].sampling.n, 1));
    running.request_ids.push_back("batch-" + std::to_string(job.line.number) + "-" +
                                  std::to_string(i));
  }
  {
    std::lock_guard lock(mutex_);
    running.num_open = num_requests;
    changed_ = changed_ || num_requests == 0;
  }
  for (size_t i = 0; i < num_requests; ++i) submit(running, i);
}

void BatchRunner::submit(Running& running, size_t i) {
  Request request = running.job->request.requests[i];
  request.request_id = running.request_ids[i];
  OutputCallback callback = [this, &running, i](const RequestOutput& output) {
    receive(running, i, output);
  };
  Status status;
  if (const std::optional<float>& penalty = running.job->request.beam_length_penalty; penalty) {
    running.beams.push_back(std::make_shared<BeamSearch>(engine_, *penalty));
    status = running.beams.back()->start(std::move(request), std::move(callback));
  } else {
    status = engine_.submit(std::move(request), std::move(callback));
  }
  if (!status.ok()) end(running, i, status);
}

void BatchRunner::receive(Running& running, size_t i, const RequestOutput& output) {
  std::lock_guard lock(mutex_);
  OutputSum& sum = running.job->sums[i];
  if (sum.finished()) return;
  sum.add(output);
  if (!sum.finished()) return;
  if (running.job->error.ok()) running.job->error = sum.status();
  --running.num_open;
  changed_ = true;
  news_.notify_all();
}

void BatchRunner::end(Running& running, size_t i, const Status& status) {
  std::lock_guard lock(mutex_);
  running.job->sums[i].fail(status);
  if (running.job->error.ok()) running.job->error = status;
  --running.num_open;
  changed_ = true;
}

std::vector<std::unique_ptr<BatchJob>> BatchRunner::take_finished() {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(50), [this] { return changed_; });
  changed_ = false;
  std::vector<std::unique_ptr<BatchJob>> finished;
  for (std::unique_ptr<Running>& running : jobs_) {
    if (running->num_open > 0) continue;
    finished.push_back(std::move(running->job));
    running.reset();
  }
  std::erase(jobs_, nullptr);
  return finished;
}

void BatchRunner::abort_all() {
  for (const std::unique_ptr<Running>& running : jobs_) {
    for (const std::string& id : running->request_ids) engine_.abort(id);
    for (const std::shared_ptr<BeamSearch>& beams : running->beams) beams->abort();
  }
}

}  // namespace foretoken
