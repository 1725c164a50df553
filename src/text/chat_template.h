#pragma once
#include <foretoken_text.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

struct TokenizerConfig;

// The Jinja templates of a model, rendered as Hugging Face transformers renders them. `render` may
// be called by any number of threads at once.
class ChatTemplate {
 public:
  // From the files of a model folder. kNotFound when the model has no chat template.
  static Result<ChatTemplate> load(const std::filesystem::path& folder);

  // `origin` names the templates in messages. Fails on a syntax error.
  static Result<ChatTemplate> compile(const TokenizerConfig& config, std::string origin);

  // `messages_json` is an array of {"role", "content", ...}. `arguments_json` is an object with
  // further variables (tools, documents, enable_thinking, ...) or empty. The template "tool_use" is
  // taken where it exists and the arguments hold tools, otherwise "default". kInvalidArgument when
  // the JSON is wrong, the template refuses the conversation or cannot be evaluated with it.
  Result<std::string> render(std::string_view messages_json, std::string_view arguments_json,
                             bool add_generation_prompt) const;

 private:
  struct Deleter {
    void operator()(FtTemplate* compiled) const { ft_template_free(compiled); }
  };
  using Compiled = std::unique_ptr<FtTemplate, Deleter>;

  const FtTemplate* select(std::string_view arguments_json) const;

  std::string origin_;
  std::map<std::string, Compiled> templates_;
};

}  // namespace foretoken
