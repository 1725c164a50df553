#include "text/chat_template.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text_file.h"
#include "text/crate_buffers.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

constexpr size_t kLongestPath = 4096;

bool has_tools(std::string_view arguments_json) {
  using nlohmann::json;
  const json arguments = json::parse(arguments_json, nullptr, /*allow_exceptions=*/false);
  return arguments.is_object() && arguments.contains("tools") && !arguments["tools"].is_null();
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
  const bool is_file = choice.size() < kLongestPath && std::filesystem::exists(choice, error);
  if (!is_file && choice.find_first_of("{}\n") == std::string::npos) {
    return not_found("the chat template " + choice +
                     " is neither a file nor a Jinja template (which has braces)");
  }
  std::string source = choice;
  if (is_file) {
    FT_ASSIGN_OR_RETURN(source, read_text_file(choice));
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
    result.templates_.emplace(name, Compiled(raw));
  }
  return result;
}

const FtTemplate* ChatTemplate::select(std::string_view arguments_json) const {
  auto found = templates_.end();
  if (templates_.size() > 1 && has_tools(arguments_json)) found = templates_.find("tool_use");
  if (found == templates_.end()) found = templates_.find("default");
  return found == templates_.end() ? nullptr : found->second.get();
}

Result<std::string> ChatTemplate::render(std::string_view messages_json,
                                         std::string_view arguments_json,
                                         bool add_generation_prompt) const {
  return render(messages_json, arguments_json, Options{add_generation_prompt});
}

ContentFormat ChatTemplate::content_format(std::string_view arguments_json) const {
  const FtTemplate* compiled = select(arguments_json);
  if (compiled == nullptr || !ft_template_wants_parts(compiled)) return ContentFormat::kString;
  return ContentFormat::kOpenAi;
}

Result<std::string> ChatTemplate::render(std::string_view messages_json,
                                         std::string_view arguments_json,
                                         const Options& options) const {
  const FtTemplate* compiled = select(arguments_json);
  if (compiled == nullptr) {
    return not_found(origin_ + " has no chat template named \"default\"; add chat_template.jinja");
  }
  CrateText text;
  CrateText error;
  const int32_t code = ft_template_render(compiled, messages_json.data(), messages_json.size(),
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
