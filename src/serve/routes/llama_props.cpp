#include "serve/routes/llama_props.h"

#include <foretoken/version.h>

#include <ctime>

#include "serve/llamacpp/llama_request.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

json slot_json(const EngineInfo& info, int index, bool runs) {
  return {{"id", index},
          {"id_task", runs ? index : -1},
          {"n_ctx", info.max_model_len},
          {"speculative", !info.drafters.empty()},
          {"is_processing", runs}};
}

json default_settings(const ServeContext& context) {
  const EngineInfo& info = context.engine.info();
  json params = llama_settings(context.defaults.sampling, false);
  // To the end of the context.
  params["max_tokens"] = params["n_predict"] = -1;
  json settings = slot_json(info, 0, false);
  settings["params"] = std::move(params);
  settings["prompt"] = "";
  settings["next_token"] = {{"has_next_token", true},
                            {"has_new_line", false},
                            {"n_remain", -1},
                            {"n_decoded", 0},
                            {"stopping_word", ""}};
  return settings;
}

json ollama_details() {
  return {{"parent_model", ""},   {"format", "gguf"},
          {"family", ""},         {"families", json::array({""})},
          {"parameter_size", ""}, {"quantization_level", ""}};
}

bool writes_texts(const EngineInfo& info) { return info.pair_marks == 0 && info.num_labels == 0; }

bool calls_tools(const ServeContext& context) {
  return writes_texts(context.engine.info()) && context.engine.chat_template(true) != nullptr;
}

json capabilities(const ServeContext& context) {
  json all = {"completion"};
  if (context.engine.chat_template(true) != nullptr) all.push_back("tools");
  return all;
}

}  // namespace

std::string utc_time(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

json api_show_body(const ServeContext& context) {
  const EngineInfo& info = context.engine.info();
  const ChatTemplateTraits* chat = context.engine.chat_template(false);
  const json size = info.max_model_len;
  return {{"template", chat == nullptr ? std::string() : chat->source},
          {"model_info",
           {{"general.architecture", "llama"},
            {"general.parameter_count", info.num_parameters},
            {"llama.context_length", size}}},
          {"modelfile", ""},
          {"parameters", ""},
          {"details", ollama_details()},
          {"capabilities", capabilities(context)}};
}

json ollama_model(const ServeContext& context, const std::string& name) {
  return {{"name", name},
          {"model", name},
          {"modified_at", utc_time(context.created)},
          {"size", context.engine.info().weight_bytes},
          {"digest", ""},
          {"type", "model"},
          {"description", ""},
          {"tags", json::array({""})},
          {"capabilities", capabilities(context)},
          {"parameters", ""},
          {"details", ollama_details()}};
}

json lmstudio_model(const ServeContext& context, const std::string& name) {
  const EngineInfo& info = context.engine.info();
  const bool writes = writes_texts(info);
  json able = json::array();
  if (calls_tools(context)) able.push_back("tool_use");
  return {{"id", name},
          {"object", "model"},
          {"type", writes ? "llm" : "embeddings"},
          {"publisher", "foretoken"},
          {"arch", info.architecture},
          {"compatibility_type", "gguf"},
          {"quantization", info.dtype},
          {"state", "loaded"},
          {"max_context_length", info.max_model_len},
          {"loaded_context_length", info.max_model_len},
          {"capabilities", std::move(able)}};
}

json lmstudio_key(const ServeContext& context, const std::string& name) {
  const EngineInfo& info = context.engine.info();
  const json instance = {{"id", name},
                         {"config",
                          {{"context_length", info.max_model_len},
                           {"parallel", info.max_num_seqs},
                           {"eval_batch_size", info.max_num_batched_tokens}}}};
  return {{"type", writes_texts(info) ? "llm" : "embedding"},
          {"publisher", "foretoken"},
          {"key", name},
          {"display_name", name},
          {"architecture", info.architecture},
          {"quantization", {{"name", info.dtype}, {"bits_per_weight", nullptr}}},
          {"size_bytes", info.weight_bytes},
          {"params_string", nullptr},
          {"loaded_instances", json::array({instance})},
          {"max_context_length", info.max_model_len},
          {"format", "gguf"},
          {"capabilities", {{"vision", false}, {"trained_for_tool_use", calls_tools(context)}}},
          {"description", nullptr}};
}

json props_body(const ServeContext& context) {
  const EngineInfo& info = context.engine.info();
  const ChatTemplateTraits* chat = context.engine.chat_template(false);
  return {{"default_generation_settings", default_settings(context)},
          {"total_slots", info.max_num_seqs},
          {"model_alias", context.model_name()},
          {"model_path", context.model_name()},
          {"modalities", {{"vision", false}, {"audio", false}}},
          {"endpoint_slots", true},
          {"endpoint_props", false},
          {"endpoint_metrics", true},
          {"chat_template", chat == nullptr ? std::string() : chat->source},
          {"chat_template_caps", json::object()},
          {"bos_token", info.bos_token},
          {"eos_token", info.eos_token},
          {"build_info", std::string("foretoken ") + kVersion},
          {"is_sleeping", context.engine.is_sleeping()}};
}

json slots_body(const ServeContext& context) {
  const EngineInfo& info = context.engine.info();
  const EngineStats stats = context.engine.stats();
  json slots = json::array();
  for (int i = 0; i < info.max_num_seqs; ++i) {
    slots.push_back(slot_json(info, i, i < stats.num_running_requests));
  }
  return slots;
}

}  // namespace foretoken
