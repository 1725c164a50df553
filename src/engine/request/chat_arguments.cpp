#include "engine/request/chat_arguments.h"

#include <optional>

#include "base/files/json_object.h"

namespace foretoken {
namespace {

using OrderedJson = nlohmann::ordered_json;  // templates print values in the order of their keys

constexpr const char* kWhat = "the arguments of the chat template";

// Takes a switch out of the variables.
Status take(OrderedJson& variables, const char* name, std::optional<bool>& value) {
  const auto found = variables.find(name);
  if (found == variables.end()) return {};
  if (!found->is_null()) {
    if (!found->is_boolean()) {
      return invalid_argument(std::string(kWhat) + ": '" + name + "' must be true or false");
    }
    value = found->get<bool>();
  }
  variables.erase(found);
  return {};
}

Status merge_kwargs(OrderedJson& variables) {
  const auto found = variables.find("chat_template_kwargs");
  if (found == variables.end()) return {};
  OrderedJson kwargs = std::move(*found);
  variables.erase(found);
  if (kwargs.is_null()) return {};
  if (!kwargs.is_object()) {
    return invalid_argument(std::string(kWhat) + ": 'chat_template_kwargs' must be an object");
  }
  kwargs.update(variables);
  variables = std::move(kwargs);
  return {};
}

}  // namespace

Result<ChatArguments> parse_chat_arguments(const std::string& json) {
  ChatArguments arguments;
  if (json.empty()) return arguments;
  FT_ASSIGN_OR_RETURN(OrderedJson variables, parse_ordered_json_object(json, kWhat));
  FT_RETURN_IF_ERROR(merge_kwargs(variables));
  std::optional<bool> generation;
  std::optional<bool> continued;
  FT_RETURN_IF_ERROR(take(variables, "add_generation_prompt", generation));
  FT_RETURN_IF_ERROR(take(variables, "continue_final_message", continued));
  arguments.continue_final_message = continued.value_or(false);
  arguments.add_generation_prompt = generation.value_or(!arguments.continue_final_message);
  if (arguments.continue_final_message && arguments.add_generation_prompt) {
    return invalid_argument(std::string(kWhat) +
                            ": add_generation_prompt and continue_final_message exclude one "
                            "another; leave one out");
  }
  if (!variables.empty()) {
    arguments.variables = variables.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
  return arguments;
}

}  // namespace foretoken
