#include "serve/routes/generate_handlers.h"

#include "serve/routes/llama_handlers.h"
#include "serve/routes/openai_handlers.h"
#include "serve/sglang/sglang_format.h"
#include "serve/sglang/sglang_request.h"
#include "serve/tgi/tgi_format.h"
#include "serve/tgi/tgi_request.h"

namespace foretoken {
namespace {

Result<SglangRequest> read_generate(const ServeContext& context, Body body) {
  if (body.contains("prompt")) {
    return invalid_argument(
        "/generate has SGLang's form here, {\"text\" or \"input_ids\", \"sampling_params\"}, and "
        "text-generation-inference's, {\"inputs\", \"parameters\"}; for 'prompt' take "
        "/v1/completions");
  }
  std::vector<std::string> warnings;
  pass_over_model(context.defaults, &body, &warnings);
  FT_ASSIGN_OR_RETURN(SglangRequest request, parse_sglang_request(body, context.defaults));
  request.text.warnings.insert(request.text.warnings.begin(), warnings.begin(), warnings.end());
  return request;
}

nlohmann::ordered_json load_of(const EngineStats& stats, size_t rank, int block_size) {
  const int64_t running = stats.num_running_requests;
  const int64_t waiting = stats.num_waiting_requests;
  const int64_t used = (stats.num_total_blocks - stats.num_free_blocks) * block_size;
  const int64_t all = stats.num_total_blocks * block_size;
  const double usage = all > 0 ? static_cast<double>(used) / static_cast<double>(all) : 0;
  return {{"dp_rank", rank},
          {"num_reqs", running + waiting},
          {"num_running_reqs", running},
          {"num_waiting_reqs", waiting},
          {"num_total_reqs", running + waiting},
          {"num_tokens", used},
          {"num_used_tokens", used},
          {"max_total_num_tokens", all},
          {"max_running_requests", stats.num_total_slots},
          {"token_usage", usage}};
}

Result<TgiRequest> read_tgi(const ServeContext& context, TgiPath path, Body body) {
  std::vector<std::string> warnings;
  pass_over_model(context.defaults, &body, &warnings);
  if (path == TgiPath::kStream) body["stream"] = true;
  FT_ASSIGN_OR_RETURN(TgiRequest request, parse_tgi_request(body, context.defaults));
  request.text.warnings.insert(request.text.warnings.begin(), warnings.begin(), warnings.end());
  return request;
}

// Clients ask whether it is one that calls tools.
constexpr const char* kTgiVersion = "3.3.6";

// The engine outlives every answer.
IsSpecialToken special_tokens_of(const Engine& engine) {
  return [&engine](int32_t id) {
    std::string shown;
    std::string all;
    return engine.decode({id}, true, &shown).ok() && engine.decode({id}, false, &all).ok() &&
           shown.empty() && !all.empty();
  };
}

}  // namespace

Status handle_generate(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body) {
  if (body.contains("inputs"))
    return handle_tgi(context, exchange, TgiPath::kGenerate, std::move(body));
  FT_ASSIGN_OR_RETURN(SglangRequest request, read_generate(context, std::move(body)));
  ServeResult<PreparedText> prepared = prepare_text(context, &request.text);
  if (!prepared.ok()) {
    respond_error(*exchange, openai_error, prepared.error());
    return {};
  }
  std::string id = answer_id("", request.text.request_id, *exchange);
  OpenAiLabel label = make_label(context, id, request.text);
  const OpenAiRequest& text = request.text;
  auto format = std::make_unique<SglangFormat>(request, std::move(label));
  start_generation(context, exchange, text, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

Status handle_sglang_abort(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body) {
  JsonFields fields(body, "");
  std::string id;
  bool all = false;
  fields.read("rid", &id);
  fields.read("abort_all", &all);
  fields.ignore({"abort_message", "finished_reason"});
  fields.refuse_unread();
  if (!all && id.empty()) fields.fail("give 'rid', the id of an answer, or \"abort_all\": true");
  FT_RETURN_IF_ERROR(fields.status());
  const std::vector<std::shared_ptr<Generation>> found =
      all ? context.generations.all() : context.generations.find(id);
  for (const std::shared_ptr<Generation>& generation : found) generation->abort();
  respond_json(*exchange, 200, {{"aborted", found.size()}});
  return {};
}

nlohmann::ordered_json sglang_model_info(const ServeContext& context) {
  return {{"model_path", context.model_name()},
          {"tokenizer_path", context.model_name()},
          {"is_generation", true},
          {"preferred_sampling_params", nullptr},
          {"weight_version", "default"}};
}

nlohmann::ordered_json sglang_loads(const ServeContext& context) {
  const EngineStats stats = context.engine.stats();
  const int block_size = context.engine.info().block_size;
  nlohmann::ordered_json loads = nlohmann::ordered_json::array();
  if (stats.engines.empty()) loads.push_back(load_of(stats, 0, block_size));
  for (size_t i = 0; i < stats.engines.size(); ++i) {
    loads.push_back(load_of(stats.engines[i], i, block_size));
  }
  return loads;
}

Status handle_tgi(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                  TgiPath path, Body body) {
  Result<TgiRequest> read = read_tgi(context, path, std::move(body));
  if (!read.ok()) {
    respond_error(*exchange, tgi_error, read.status());
    return {};
  }
  TgiRequest& request = read.value();
  ServeResult<PreparedText> prepared = prepare_text(context, &request.text);
  if (!prepared.ok()) {
    respond_error(*exchange, tgi_error, prepared.error());
    return {};
  }
  std::string id = answer_id("", request.text.request_id, *exchange);
  const OpenAiRequest& text = request.text;
  auto format = std::make_unique<TgiFormat>(request, path == TgiPath::kRoot,
                                            special_tokens_of(context.engine));
  start_generation(context, exchange, text, std::move(prepared.value()), std::move(id),
                   std::move(format));
  return {};
}

nlohmann::ordered_json tgi_info(const ServeContext& context) {
  const EngineInfo& info = context.engine.info();
  return {{"model_id", context.model_name()},
          {"model_sha", nullptr},
          {"model_dtype", info.dtype},
          {"model_device_type", info.device},
          {"model_pipeline_tag", info.num_labels > 0   ? "text-classification"
                                 : info.pair_marks > 0 ? "feature-extraction"
                                                       : "text-generation"},
          {"auto_truncate", true},
          {"max_concurrent_requests", info.max_num_seqs},
          {"max_best_of", 1},
          {"max_stop_sequences", 4},
          {"max_input_length", info.max_model_len},
          {"max_input_tokens", info.max_model_len},
          {"max_total_tokens", info.max_model_len},
          {"max_batch_total_tokens", info.max_num_batched_tokens},
          {"max_client_batch_size", kMaxPrompts},
          {"validation_workers", 1},
          {"router", "foretoken"},
          {"version", kTgiVersion},
          {"sha", nullptr},
          {"docker_label", nullptr}};
}

}  // namespace foretoken
