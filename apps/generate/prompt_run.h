#pragma once
#include <CLI/CLI.hpp>

#include "apps/options/engine_options.h"
#include "apps/options/prompt_item.h"
#include "apps/options/template_options.h"

namespace foretoken {

// A command that runs the prompts of its command line.
struct PromptRun {
  EngineOptions engine;
  TemplateOptions chat_template;
  PromptSources sources;
  bool json = false;  // one JSON object a line instead of text
  // The bare argument: a prompt; the model where flags name the prompts or a pipe gives one.
  std::string argument;
  std::string prompt;  // a second one: the prompt behind the model
};

// The flags of the engine and those that name prompts, and a bare prompt; they write into
// `options`, which must outlive the parsing.
void add_source_flags(CLI::App& command, PromptRun& options);

// Takes the bare arguments for what they are, and the prompt from a pipe where none was named. A
// usage error when there is none, or only a model.
void finish_sources(PromptRun& options);

// Runs all prompts and shows what comes of them; the exit code.
int run_prompts(const PromptRun& options);

}  // namespace foretoken
