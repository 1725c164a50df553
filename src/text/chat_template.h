#pragma once
#include <foretoken/chat_template.h>
#include <foretoken_text.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

struct TokenizerConfig;

// The Jinja templates of a model, rendered as Hugging Face transformers renders them. `render` may
// be called by any number of threads at once. A template is not trusted: its work, memory, depth
// and output are bounded.
class ChatTemplate {
 public:
  // From the files of a model. kNotFound when the model has no chat template.
  static Result<ChatTemplate> load(const ModelFiles& model);

  // With `choice` (as --chat-template takes it) in place of the model's own template: the path of a
  // file, or the template itself, which has a brace or a line break in it. The special tokens are
  // those of the model. An empty `choice` is `load`.
  static Result<ChatTemplate> load(const ModelFiles& model, const std::string& choice);

  // `origin` names the templates in messages. Fails on a syntax error.
  static Result<ChatTemplate> compile(const TokenizerConfig& config, std::string origin);

  // `messages_json` is an array of {"role", "content", ...}. `arguments_json` is an object with
  // further variables (tools, documents, enable_thinking, ...) or empty. The template "tool_use" is
  // taken where it exists and the arguments hold tools, "rag" with documents, otherwise "default".
  // kInvalidArgument when the JSON is wrong, the template refuses the conversation or cannot be
  // evaluated with it.
  Result<std::string> render(std::string_view messages_json, std::string_view arguments_json,
                             bool add_generation_prompt) const;

  struct Options {
    bool add_generation_prompt = false;
    // The text ends with the last message's own words, for the model to go on with them.
    bool continue_final_message = false;
    // What strftime_now takes for the present, in seconds since 1970; -1 is the clock.
    int64_t now = -1;
  };
  Result<std::string> render(std::string_view messages_json, std::string_view arguments_json,
                             const Options& options) const;

  // What the template that `arguments_json` selects can do, and its source; null when there is
  // none. The first call renders some conversations.
  const ChatTemplateTraits* traits(std::string_view arguments_json) const;

 private:
  struct Deleter {
    void operator()(FtTemplate* compiled) const { ft_template_free(compiled); }
  };
  // One template. Its traits are found when they are first asked for.
  struct Compiled {
    std::string source;
    std::unique_ptr<FtTemplate, Deleter> handle;
    mutable std::once_flag probed;
    mutable ChatTemplateTraits traits;
  };

  const Compiled* select(std::string_view arguments_json) const;
  Result<std::string> render_with(const Compiled& compiled, std::string_view messages_json,
                                  std::string_view arguments_json, const Options& options) const;
  void probe(const Compiled& compiled) const;

  std::string origin_;
  std::map<std::string, std::unique_ptr<Compiled>> templates_;
};

}  // namespace foretoken
