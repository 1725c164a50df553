#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

namespace foretoken {

// What the chat template gets beside the messages: --chat-template-kwargs, --tools and --documents.
struct TemplateOptions {
  std::string kwargs_json;
  std::string tools;      // JSON array, or a file that holds one
  std::string documents;  // the same

  // The flags write into this object, which must outlive the parsing.
  void add_to(CLI::App& app);

  // One JSON object for Engine::render_chat, or empty. Reads the files.
  Result<std::string> arguments_json() const;
};

}  // namespace foretoken
