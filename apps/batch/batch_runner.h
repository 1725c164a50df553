#pragma once
#include <foretoken/engine.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/batch/batch_file.h"
#include "serve/answer/output_sum.h"
#include "serve/fields/request_warnings.h"
#include "serve/flow/beam_search.h"
#include "serve/openai/openai_response.h"
#include "serve/openai/score_request.h"
#include "serve/responses/responses_request.h"
#include "serve/sglang/label_scores.h"

namespace foretoken {

// What output lines tell beside the answers.
struct BatchReport {
  std::string model;                  // of lines that name none
  bool speculation_metrics = false;   // vLLM's summary in each body
  bool synthetic_acceptance = false;  // drafts are accepted by chance
  std::vector<DrafterInfo> drafters;  // of the engine
};

// One line of a batch that runs or has run.
struct BatchJob {
  BatchLine line;
  OpenAiRequest request;
  std::optional<ScoreRequest> score;               // whose embeddings `request` makes
  std::optional<LabelScoring> labels;              // whose texts `request` has
  std::optional<ResponsesRequest> asked_response;  // whose chat `request` is
  std::vector<OutputSum> sums;                     // of request.requests
  std::vector<std::string> prompts;
  Status error;  // of the line, or the first of its requests

  // {"id", "custom_id", "response": {"status_code", "request_id", "body"}, "error"}.
  nlohmann::ordered_json output_line(const BatchReport& report) const;
  int64_t num_output_tokens() const;

 private:
  nlohmann::ordered_json answer(OpenAiLabel label) const;
};

// The lines of a batch that are in flight. The engine must outlive it; the destructor aborts and
// waits for what still runs. Used by one thread beside the engine's.
class BatchRunner {
 public:
  BatchRunner(Engine& engine, OpenAiDefaults defaults)
      : engine_(engine), defaults_(std::move(defaults)) {}
  ~BatchRunner();
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  // Submits the requests of a line. What is wrong with it becomes its error.
  void start(BatchLine line);
  // Lines whose requests have not all finished, and those not yet taken.
  size_t num_open() const { return jobs_.size(); }
  // Waits until a line has finished, but at most 50 ms, and gives all that have.
  std::vector<std::unique_ptr<BatchJob>> take_finished();
  void abort_all();

 private:
  struct Running {
    std::unique_ptr<BatchJob> job;
    std::vector<std::string> request_ids;
    std::vector<std::shared_ptr<BeamSearch>> beams;  // in place of requests, where they are wanted
    size_t num_open = 0;                             // requests; guarded by mutex_
  };

  Status parse(BatchJob& job) const;
  Status parse_response(BatchJob& job) const;
  Status prepare(BatchJob& job);
  Status read_prompts(BatchJob& job) const;
  void submit(Running& running, size_t i);
  void receive(Running& running, size_t i, const RequestOutput& output);
  void end(Running& running, size_t i, const Status& status);

  Engine& engine_;
  const OpenAiDefaults defaults_;
  WarningLog warning_log_;
  std::mutex mutex_;
  std::condition_variable news_;
  bool changed_ = false;
  std::vector<std::unique_ptr<Running>> jobs_;
};

}  // namespace foretoken
