#include "text/chat_template.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/files/local_path.h"
#include "base/files/text_file.h"
#include "text/chat_traits.h"
#include "text/crate_buffers.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

constexpr size_t kLongestPath = 4096;

// Whether a template of its own may serve the arguments: its name, or null.
const char* special_template(std::string_view arguments_json) {
  using nlohmann::json;
  const json arguments = json::parse(arguments_json, nullptr, /*allow_exceptions=*/false);
  if (!arguments.is_object()) return nullptr;
  const auto given = [&](const char* name) {
    return arguments.contains(name) && !arguments[name].is_null();
  };
  return given("tools") ? "tool_use" : given("documents") ? "rag" : nullptr;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::load(const ModelFiles& model) {
  FT_ASSIGN_OR_RETURN(const TokenizerConfig config, load_tokenizer_config(model));
  if (config.chat_templates.empty()) {
    return not_found(model.text() +
                     " has no chat template; put a chat_template.jinja into the folder, or send a "
                     "plain prompt instead of messages");
  }
  return compile(config, model.text());
}

Result<ChatTemplate> ChatTemplate::load(const ModelFiles& model, const std::string& choice) {
  if (choice.empty()) return load(model);
  FT_ASSIGN_OR_RETURN(TokenizerConfig config, load_tokenizer_config(model));
  std::error_code error;
  const std::string path = choice.size() < kLongestPath ? local_path(choice) : std::string();
  const bool is_file = !path.empty() && std::filesystem::exists(path, error);
  if (!is_file && choice.find_first_of("{}\n") == std::string::npos) {
    return not_found("the chat template " + choice +
                     " is neither a file nor a Jinja template (which has braces)");
  }
  std::string source = choice;
  if (is_file) {
    FT_ASSIGN_OR_RETURN(source, read_text_file(path));
  }
  config.chat_templates = {{"default", std::move(source)}};
  return compile(config, is_file ? choice : "the command line");
}

Result<ChatTemplate> ChatTemplate::compile(const TokenizerConfig& config, std::string origin) {
  const std::string globals = nlohmann::json(config.special_tokens)
                                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  ChatTemplate result;
  result.origin_ = std::move(origin);
  for (const auto& [name, source] : config.chat_templates) {
    FtTemplate* raw = nullptr;
    CrateText error;
    if (ft_template_new(source.data(), source.size(), globals.data(), globals.size(), &raw,
                        error.out()) != FT_TEXT_OK) {
      return invalid_argument("the chat template \"" + name + "\" of " + result.origin_ +
                              " cannot be compiled: " + error.str());
    }
    auto compiled = std::make_unique<Compiled>();
    compiled->source = source;
    compiled->handle.reset(raw);
    result.templates_.emplace(name, std::move(compiled));
  }
  return result;
}

const ChatTemplate::Compiled* ChatTemplate::select(std::string_view arguments_json) const {
  auto found = templates_.end();
  const char* special = templates_.size() > 1 ? special_template(arguments_json) : nullptr;
  if (special != nullptr) found = templates_.find(special);
  if (found == templates_.end()) found = templates_.find("default");
  return found == templates_.end() ? nullptr : found->second.get();
}

Result<std::string> ChatTemplate::render(std::string_view messages_json,
                                         std::string_view arguments_json,
                                         bool add_generation_prompt) const {
  return render(messages_json, arguments_json, Options{add_generation_prompt});
}

const ChatTemplateTraits* ChatTemplate::traits(std::string_view arguments_json) const {
  const Compiled* compiled = select(arguments_json);
  if (compiled == nullptr) return nullptr;
  std::call_once(compiled->probed, [&] { probe(*compiled); });
  return &compiled->traits;
}

void ChatTemplate::probe(const Compiled& compiled) const {
  using json = nlohmann::ordered_json;
  compiled.traits = probe_chat_traits([&](const json& messages,
                                          const json& arguments) -> std::optional<std::string> {
    Result<std::string> prompt =
        render_with(compiled, messages.dump(), arguments.dump(), {.add_generation_prompt = true});
    if (!prompt.ok()) return std::nullopt;
    return std::move(prompt).value();
  });
  compiled.traits.source = compiled.source;
}

Result<std::string> ChatTemplate::render(std::string_view messages_json,
                                         std::string_view arguments_json,
                                         const Options& options) const {
  const Compiled* compiled = select(arguments_json);
  if (compiled == nullptr) {
    return not_found(origin_ + " has no chat template named \"default\"; add chat_template.jinja");
  }
  return render_with(*compiled, messages_json, arguments_json, options);
}

Result<std::string> ChatTemplate::render_with(const Compiled& compiled,
                                              std::string_view messages_json,
                                              std::string_view arguments_json,
                                              const Options& options) const {
  CrateText text;
  CrateText error;
  const int32_t code =
      ft_template_render(compiled.handle.get(), messages_json.data(), messages_json.size(),
                         arguments_json.data(), arguments_json.size(),
                         {.add_generation_prompt = options.add_generation_prompt,
                          .continue_final_message = options.continue_final_message,
                          .now = options.now},
                         text.out(), error.out());
  if (code == FT_TEXT_OK) return text.str();
  if (code == FT_TEXT_REFUSED) {
    return invalid_argument("the model's chat template refuses these messages: " + error.str());
  }
  return invalid_argument("the chat template of " + origin_ +
                          " cannot render these messages: " + error.str());
}

}  // namespace foretoken
