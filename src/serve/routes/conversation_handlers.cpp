#include "serve/routes/conversation_handlers.h"

#include <algorithm>
#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/responses/item_page.h"
#include "serve/responses/response_items.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status no_conversation(const std::string& id) {
  return not_found("there is no conversation '" + id + "' here, or it was forgotten");
}

Status no_item(const http::Request& request) {
  return not_found("the conversation '" + request.path_values[0] + "' has no item '" +
                   request.path_values[1] + "'");
}

json conversation_json(const Conversation& conversation) {
  return {{"id", conversation.id},
          {"object", "conversation"},
          {"created_at", conversation.created},
          {"metadata", conversation.metadata}};
}

ItemFinder item_finder(const ServeContext& context) {
  return [&context](const std::string& id) { return context.responses.find_item(id); };
}

// OpenAI's labels: an object of texts.
Result<json> read_metadata(JsonFields& fields) {
  const json* given = fields.raw("metadata");
  if (given == nullptr) return json::object();
  const bool right =
      given->is_object() && std::ranges::all_of(given->items(), [](const auto& label) {
        return label.value().is_string();
      });
  if (!right) return invalid_argument("'metadata' must be an object of strings");
  return *given;
}

}  // namespace

Status handle_create_conversation(ServeContext& context,
                                  const std::shared_ptr<http::Exchange>& exchange,
                                  const Body& body) {
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(context.defaults, &warnings));
  Conversation made;
  FT_ASSIGN_OR_RETURN(made.metadata, read_metadata(fields));
  if (const json* items = fields.raw("items"); items != nullptr) {
    FT_ASSIGN_OR_RETURN(const json read, read_conversation_items(*items, item_finder(context)));
    made.items.assign(read.begin(), read.end());
  }
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  made.id = make_item_id("conv");
  made.created = unix_seconds();
  const json answer = conversation_json(made);
  context.conversations.create(std::move(made));
  respond_with_warnings(context, *exchange, answer, warnings);
  return {};
}

Result<json> find_conversation(ServeContext& context, const std::string& id) {
  const std::optional<Conversation> found = context.conversations.find(id);
  if (!found) return no_conversation(id);
  return conversation_json(*found);
}

Status handle_update_conversation(ServeContext& context,
                                  const std::shared_ptr<http::Exchange>& exchange,
                                  const Body& body) {
  const std::string& id = exchange->request().path_values.front();
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(context.defaults, &warnings));
  FT_ASSIGN_OR_RETURN(json metadata, read_metadata(fields));
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  if (!context.conversations.set_metadata(id, std::move(metadata))) return no_conversation(id);
  FT_ASSIGN_OR_RETURN(json answer, find_conversation(context, id));
  respond_with_warnings(context, *exchange, std::move(answer), warnings);
  return {};
}

Result<json> delete_conversation(ServeContext& context, const std::string& id) {
  if (!context.conversations.erase(id)) return no_conversation(id);
  return json{{"id", id}, {"object", "conversation.deleted"}, {"deleted", true}};
}

Status handle_create_items(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body) {
  const std::string& id = exchange->request().path_values.front();
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(context.defaults, &warnings));
  const json* items = fields.raw("items");
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  if (items == nullptr) return invalid_argument("'items' is missing; give a list of items");
  FT_ASSIGN_OR_RETURN(const json read, read_conversation_items(*items, item_finder(context)));
  const auto added = context.conversations.add(id, {read.begin(), read.end()});
  if (!added) return no_conversation(id);
  const json answer = {{"object", "list"},
                       {"data", *added},
                       {"first_id", added->empty() ? json() : added->front()["id"]},
                       {"last_id", added->empty() ? json() : added->back()["id"]},
                       {"has_more", false}};
  respond_with_warnings(context, *exchange, answer, warnings);
  return {};
}

Result<json> list_conversation_items(ServeContext& context, const http::Request& request) {
  const std::string& id = request.path_values.front();
  std::optional<Conversation> found = context.conversations.find(id);
  if (!found) return no_conversation(id);
  return item_page(request, std::move(found->items), "the conversation '" + id + "'");
}

Result<json> find_conversation_item(ServeContext& context, const http::Request& request) {
  const std::string& id = request.path_values.front();
  const std::optional<Conversation> found = context.conversations.find(id);
  if (!found) return no_conversation(id);
  for (const json& item : found->items) {
    if (item.at("id") == request.path_values[1]) return item;
  }
  return no_item(request);
}

Result<json> delete_conversation_item(ServeContext& context, const http::Request& request) {
  const std::string& id = request.path_values.front();
  FT_ASSIGN_OR_RETURN(json answer, find_conversation(context, id));
  if (!context.conversations.erase_item(id, request.path_values[1])) return no_item(request);
  return answer;
}

KeepOutput conversation_keeper(ServeContext& context, const ResponsesRequest& request) {
  if (request.conversation.empty()) return {};
  json input = json::array();
  for (size_t i = request.num_items_before; i < request.items.size(); ++i) {
    input.push_back(request.items[i]);
  }
  return [&context, id = request.conversation, input = std::move(input)](const json& output) {
    json items = resolve_references(input, item_finder(context));
    for (const json& item : output) items.push_back(item);
    context.conversations.add(id, {items.begin(), items.end()});
  };
}

}  // namespace foretoken
