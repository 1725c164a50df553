#include "serve/routes/info_handlers.h"

#include <foretoken/version.h>

#include <algorithm>

#include "serve/fields/json_fields.h"
#include "serve/routes/llama_props.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// OpenAI's members, vLLM's and llama.cpp's, and those that Anthropic's clients show.
json one_model(const ServeContext& context, const std::string& name) {
  const EngineInfo& info = context.engine.info();
  const json permission = {{"id", "modelperm-" + name},
                           {"object", "model_permission"},
                           {"created", context.created},
                           {"allow_create_engine", false},
                           {"allow_sampling", true},
                           {"allow_logprobs", true},
                           {"allow_search_indices", false},
                           {"allow_view", true},
                           {"allow_fine_tuning", false},
                           {"organization", "*"},
                           {"group", nullptr},
                           {"is_blocking", false}};
  return {{"id", name},
          {"object", "model"},
          {"type", "model"},
          {"created", context.created},
          {"created_at", utc_time(context.created)},
          {"display_name", name},
          {"owned_by", "foretoken"},
          {"root", name},
          {"parent", nullptr},
          {"max_model_len", info.max_model_len},
          {"max_input_tokens", info.max_model_len},  // Anthropic's name
          {"permission", json::array({permission})},
          {"meta",
           {{"n_vocab", info.vocab_size},
            {"n_ctx", info.max_model_len},
            {"n_ctx_train", info.max_position_embeddings},
            {"n_embd", info.hidden_size},
            {"n_params", info.num_parameters},
            {"size", info.weight_bytes}}}};
}

// As vLLM has it: `root` is where the adapter lies, `parent` the model that it changes.
json one_adapter(const ServeContext& context, const AdapterInfo& adapter) {
  json model = one_model(context, adapter.name);
  model["root"] = adapter.path;
  model["parent"] =
      adapter.base_model_name.empty() ? context.model_name() : adapter.base_model_name;
  return model;
}

// What SGLang's benchmarks read behind a run: one of each engine; null where nothing was drafted.
json internal_states(const EngineStats& stats) {
  const auto state = [](const RequestStats& sums) {
    json length = nullptr;
    if (sums.num_drafts > 0) {
      length =
          1 + static_cast<double>(sums.num_accepted_tokens) / static_cast<double>(sums.num_drafts);
    }
    return json{{"avg_spec_accept_length", std::move(length)}};
  };
  json states = json::array();
  for (const EngineStats& engine : stats.engines) states.push_back(state(engine.requests));
  if (stats.engines.empty()) states.push_back(state(stats.requests));
  return states;
}

}  // namespace

json models_body(const ServeContext& context, bool with_ollamas) {
  json data = json::array();
  for (const std::string& name : context.config.model_names) {
    data.push_back(one_model(context, name));
  }
  for (const AdapterInfo& adapter : context.engine.adapters()) {
    data.push_back(one_adapter(context, adapter));
  }
  json models = json::array();
  for (const json& model : data) {
    if (with_ollamas) models.push_back(ollama_model(context, model["id"]));
  }
  const json first = data.front()["id"];
  const json last = data.back()["id"];
  return {{"object", "list"},  {"data", std::move(data)}, {"models", std::move(models)},
          {"first_id", first}, {"last_id", last},         {"has_more", false}};
}

Result<json> model_body(const ServeContext& context, const std::string& wanted) {
  if (wanted.empty()) return not_found("there is no model without a name");
  // Paths lose what they have of slashes too many, and with it the first one of a name.
  const std::string rooted = "/" + wanted;
  const std::vector<std::string>& names = context.defaults.model_names;
  const bool is_rooted = std::find(names.begin(), names.end(), rooted) != names.end();
  const std::string& id = is_rooted ? rooted : wanted;
  FT_RETURN_IF_ERROR(check_model_name(id, context.defaults));
  const bool of_engine = names_adapter(id, context.defaults);
  for (const AdapterInfo& adapter : context.engine.adapters()) {
    if (of_engine && adapter.name == id) return one_adapter(context, adapter);
  }
  return one_model(context, id);
}

json server_info_body(const ServeContext& context) {
  const EngineInfo& info = context.engine.info();
  const json model = {
      {"model", context.model_name()},       {"served_model_name", context.config.model_names},
      {"architecture", info.architecture},   {"dtype", info.dtype},
      {"max_model_len", info.max_model_len}, {"max_logprobs", info.max_logprobs}};
  json drafters = json::array();
  for (const DrafterInfo& drafter : info.drafters) {
    drafters.push_back(
        {{"method", drafter.name}, {"num_speculative_tokens", drafter.num_speculative_tokens}});
  }
  return {{"version", kVersion},
          {"internal_states", internal_states(context.engine.stats())},
          {"vllm_config",
           {{"model_config", model},
            {"device_config", {{"device", info.device}}},
            {"cache_config",
             {{"block_size", info.block_size},
              {"num_gpu_blocks", info.num_blocks},
              {"kv_cache_memory_bytes", info.kv_cache_bytes}}},
            {"scheduler_config",
             {{"max_num_seqs", info.max_num_seqs},
              {"max_num_batched_tokens", info.max_num_batched_tokens}}},
            {"parallel_config",
             {{"data_parallel_size", info.num_engines}, {"world_size", info.ranks_per_engine}}},
            {"attention_backend", info.attention_backend},
            {"cudagraph_mode", info.cudagraph_mode},
            {"speculative_config", std::move(drafters)}}}};
}

Status engine_health(Engine& engine) {
  // An engine that has failed says so before it finds the request empty.
  const Status status = engine.submit(Request(), nullptr);
  return status.code() == StatusCode::kInvalidArgument ? Status() : status;
}

json load_body(const ServeContext& context) {
  return {{"server_load", context.gate.num_requests()}};
}

Status handle_abort(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                    const Body& body) {
  // A misspelt name that is passed over would end all requests.
  JsonFields fields(body, "");
  std::vector<std::string> ids;
  const bool some = fields.has("request_ids");
  fields.read("request_ids", &ids);
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  std::vector<std::shared_ptr<Generation>> found;
  if (!some) found = context.generations.all();
  for (const std::string& id : ids) {
    for (auto& generation : context.generations.find(id)) found.push_back(std::move(generation));
  }
  for (const std::shared_ptr<Generation>& generation : found) generation->abort();
  respond_json(*exchange, 200, {{"aborted", found.size()}});
  return {};
}

}  // namespace foretoken
