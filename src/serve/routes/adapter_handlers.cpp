#include "serve/routes/adapter_handlers.h"

#include <algorithm>
#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

void respond_done(http::Exchange& exchange, const std::string& name, const char* what) {
  exchange.respond(200, "text/plain; charset=utf-8",
                   "Success: LoRA adapter '" + name + "' " + what + " successfully.");
}

}  // namespace

Status handle_load_adapter(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body) {
  LoraModule adapter;
  bool replace = false;
  JsonFields fields(body, "");
  fields.read("lora_name", &adapter.name);
  fields.read("lora_path", &adapter.path);
  fields.read("load_inplace", &replace);
  fields.ignore({"is_3d_lora_weight"});
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  if (adapter.name.empty() || adapter.path.empty()) {
    return invalid_argument("both 'lora_name' and 'lora_path' must be given");
  }
  if (std::ranges::count(context.defaults.model_names, adapter.name) > 0) {
    return invalid_argument("'lora_name': '" + adapter.name +
                            "' is the name of the served model; choose another");
  }
  FT_RETURN_IF_ERROR(context.engine.load_adapter(adapter, replace));
  respond_done(*exchange, adapter.name, "added");
  return {};
}

Status handle_unload_adapter(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                             const Body& body) {
  std::string name;
  JsonFields fields(body, "");
  fields.read("lora_name", &name);
  fields.ignore({"lora_int_id"});
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  if (name.empty()) return invalid_argument("'lora_name' must be given");
  FT_RETURN_IF_ERROR(context.engine.unload_adapter(name));
  respond_done(*exchange, name, "removed");
  return {};
}

Status handle_load_sagemaker(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                             const Body& body) {
  Body known = Body::object();
  for (const auto& [theirs, ours] : {std::pair("name", "lora_name"), {"src", "lora_path"}}) {
    if (const auto found = body.find(theirs); found != body.end()) known[ours] = *found;
  }
  return handle_load_adapter(context, exchange, known);
}

void answer_unload_sagemaker(ServeContext& context, http::Exchange& exchange) {
  const std::string& name = exchange.request().path_values.front();
  const Status status = context.engine.unload_adapter(name);
  if (!status.ok()) return respond_error(exchange, openai_error, status);
  respond_done(exchange, name, "removed");
}

void answer_choose_adapters(ServeContext& context, http::Exchange& exchange) {
  const Result<nlohmann::ordered_json> list =
      parse_ordered_json(exchange.request().body, "the body");
  const Status status = list.ok() ? context.adapters.choose(list.value()) : list.status();
  if (!status.ok()) return respond_error(exchange, openai_error, status);
  respond_json(exchange, 200, {{"success", true}});
}

}  // namespace foretoken
