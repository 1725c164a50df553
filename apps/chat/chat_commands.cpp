#include "apps/chat/chat_commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <type_traits>
#include <vector>

#include "apps/terminal/file_text.h"
#include "apps/terminal/report.h"
#include "base/files/json_object.h"
#include "base/text/nearest_name.h"
#include "compat/compat.h"
#include "config/sampling_fields.h"
#include "config/sampling_ranges.h"
#include "draft/parts/draft_list.h"
#include "serve/answer/served_drafters.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/sampling_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

struct ChatCommand {
  const char* name;
  const char* argument;
  const char* help;
  ChatReply (*run)(const std::string& argument, ChatState& state);
};

std::span<const ChatCommand> commands();

ChatReply say(const std::string& text) { return {ChatAction::kNothing, text, false}; }
ChatReply fail(const std::string& text) { return {ChatAction::kNothing, text, true}; }

ChatReply help(const std::string&, ChatState&) {
  std::string text;
  for (const ChatCommand& command : commands()) {
    const std::string usage = std::string("/") + command.name + " " + command.argument;
    text += fmt::format("{:<23}{}\n", usage, command.help);
  }
  text +=
      "A line that ends in \\ goes on in the next; \"\"\" on a line of its own starts and ends "
      "several lines; what is pasted is one question.\nCtrl-C stops an answer; //text sends /text; "
      "Ctrl-D leaves.";
  return say(text);
}

ChatReply system(const std::string& argument, ChatState& state) {
  state.session.set_system(argument);
  return say(argument.empty() ? "no system text" : "system text set");
}

ChatReply reset(const std::string&, ChatState& state) {
  state.session.reset();
  return say("the conversation is empty");
}

ChatReply undo(const std::string&, ChatState& state) {
  if (!state.session.undo()) return fail("there is no question to take back");
  return say("the last question and its answer are taken back");
}

ChatReply retry(const std::string&, ChatState& state) {
  if (!state.session.undo_answer()) return fail("there is no question to answer again");
  return {ChatAction::kAnswer, "", false};
}

// Lays `fields` over the defaults to see whether they can be.
Status check_fields(const json& fields, const ChatState& state) {
  JsonFields reader(fields, "/set");
  SamplingParams sampling = state.engine.default_sampling_params();
  sampling.max_tokens = INT32_MAX;
  read_sampling_fields(reader, &sampling);
  reader.refuse_unread();
  FT_RETURN_IF_ERROR(reader.status());
  if (sampling.n != 1) return invalid_argument("/set: a chat has one answer, so that n is 1");
  if (!sampling.detokenize) return invalid_argument("/set: a chat needs text, so detokenize is on");
  return check_sampling_ranges(sampling);
}

ChatReply set(const std::string& argument, ChatState& state) {
  const size_t end = argument.find_first_of(" =");
  const std::string name = argument.substr(0, end);
  const std::string value = end == std::string::npos ? "" : argument.substr(end + 1);
  if (name.empty()) return fail("give a name and a value: /set temperature 0.7");
  json fields = state.sampling.fields;
  if (value.empty()) {
    if (fields.erase(name) == 0) return fail("'" + name + "' is not set; /params shows what is");
    state.sampling.fields = fields;
    return say(name + " is as the model has it");
  }
  json parsed = parsed_ordered_json(value);
  fields[name] = parsed.is_discarded() ? json(value) : std::move(parsed);
  const Status status = check_fields(fields, state);
  if (!status.ok()) return fail(status.message());
  state.sampling.fields = std::move(fields);
  return say(name + " is " + value);
}

std::string speculation_text(const ChatState& state) {
  const ServedDrafters drafters =
      served_drafters(state.engine.info().drafters, state.speculative.method);
  if (drafters.method.empty()) return "speculation none (start with --speculative-config)";
  if (!state.speculative.enabled.value_or(true)) return "speculation off";
  return fmt::format(
      "speculation on, {}, at most {} drafts", drafters.method,
      state.speculative.num_speculative_tokens.value_or(drafters.num_speculative_tokens));
}

ChatReply params(const std::string&, ChatState& state) {
  const Result<SamplingParams> sampling = chat_sampling(state);
  if (!sampling.ok()) return fail(sampling.status().message());
  std::string text;
  for (const SamplingField& field : sampling_fields()) {
    if (!shapes_draws(field)) continue;
    visit_sampling_member(field, sampling.value(), [&](const auto& value) {
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.name, value);
      }
    });
  }
  text += "\nset here: " + state.sampling.fields.dump() + "\n";
  return say(text + speculation_text(state));
}

ChatReply save(const std::string& argument, ChatState& state) {
  if (argument.empty()) return fail("name a file: /save chat.json");
  const json all = {{"messages", state.session.messages()}, {"sampling", state.sampling.fields}};
  std::ofstream file(argument, std::ios::binary);
  file << all.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
  file.flush();
  if (file) return say("saved to " + argument);
  return fail("cannot write '" + argument + "': " + std::strerror(errno));
}

Status load_file(const std::string& path, ChatState& state) {
  FT_ASSIGN_OR_RETURN(const std::string text, read_input_file(path));
  FT_ASSIGN_OR_RETURN(const json all, parse_ordered_json_object(text, path));
  const json sampling = all.value("sampling", json::object());
  if (!sampling.is_object()) return invalid_argument(path + ": 'sampling' must be an object");
  FT_RETURN_IF_ERROR(check_fields(sampling, state));
  const json messages = all.value("messages", json());
  if (messages.is_array() && messages.empty()) {
    state.session.reset();
    state.session.set_system("");
  } else {
    FT_RETURN_IF_ERROR(state.session.set_messages(messages));
  }
  state.sampling.fields = sampling;
  return {};
}

ChatReply load(const std::string& argument, ChatState& state) {
  if (argument.empty() || argument == "-") return fail("name a file: /load chat.json");
  const Status status = load_file(argument, state);
  if (!status.ok()) return fail(status.message());
  return say(fmt::format("{} messages loaded", state.session.messages().size()));
}

ChatReply stats(const std::string&, ChatState& state) {
  const EngineStats now = state.engine.stats();
  const RequestStats& sum = now.requests;
  std::string text = fmt::format(
      "{} answers, {} tokens in {} steps; {} prompt tokens, {} of them from the prefix cache\n"
      "{} of {} KV blocks free",
      now.num_finished_requests, sum.num_output_tokens, sum.num_steps, sum.num_prompt_tokens,
      sum.num_cached_tokens, now.num_free_blocks, now.num_total_blocks);
  if (!state.engine.info().drafters.empty()) {
    text += "\n" + acceptance_line(sum) + "\n" + draft_line(sum);
    const std::string lines = drafter_lines(now, state.engine.info());
    if (!lines.empty()) text += "\n" + lines.substr(0, lines.size() - 1);
  }
  return say(text);
}

std::string method_list(const ChatState& state) {
  std::string list;
  for (const DrafterInfo& drafter : state.engine.info().drafters) {
    list += (list.empty() ? "" : ", ") + drafter.name;
  }
  return list;
}

// A word after /spec: on, off, a method or a number of drafts.
Status take_spec_word(const std::string& word, const ChatState& state, SpeculativeParams* wanted) {
  if (word == "on" || word == "off") {
    wanted->enabled = word == "on";
    wanted->num_speculative_tokens.reset();
    return {};
  }
  wanted->enabled = true;
  const std::vector<DrafterInfo>& drafters = state.engine.info().drafters;
  const auto exists = [&](const std::string& name) {
    return std::any_of(drafters.begin(), drafters.end(),
                       [&](const DrafterInfo& drafter) { return drafter.name == name; });
  };
  if (const std::vector<std::string> names = names_of_list(word);
      std::all_of(names.begin(), names.end(), exists)) {
    wanted->method = word;
    wanted->num_speculative_tokens.reset();
    return {};
  }
  const bool digits = word.size() < 4 && word.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) {
    return invalid_argument("give /spec on, off, a number of drafts, or one of: " +
                            method_list(state));
  }
  wanted->num_speculative_tokens = std::stoi(word);
  return {};
}

ChatReply spec(const std::string& argument, ChatState& state) {
  const Status drafts = compat(
      {.drafts = !state.engine.info().drafters.empty(), .speculative_wish = "/spec is given"});
  if (!drafts.ok()) return fail(drafts.message());
  SpeculativeParams wanted = state.speculative;
  std::istringstream words(argument);
  for (std::string word; words >> word;) {
    const Status status = take_spec_word(word, state, &wanted);
    if (!status.ok()) return fail(status.message());
  }
  const ServedDrafters drafters = served_drafters(state.engine.info().drafters, wanted.method);
  const int most = drafters.num_speculative_tokens;
  const int num_draft_tokens = wanted.num_speculative_tokens.value_or(most);
  if (num_draft_tokens < 1 || num_draft_tokens > most) {
    return fail(
        fmt::format("{} makes 1 to {} drafts, not {}", drafters.method, most, num_draft_tokens));
  }
  state.speculative = wanted;
  return say(speculation_text(state));
}

ChatReply quit(const std::string&, ChatState&) { return {ChatAction::kQuit, "", false}; }

constexpr ChatCommand kCommands[] = {
    {"help", "", "This list", help},
    {"system", "TEXT", "System text of the conversation; none without TEXT", system},
    {"reset", "", "Forget the conversation, keep the system text", reset},
    {"undo", "", "Take the last question and its answer back", undo},
    {"retry", "", "Answer the last question again", retry},
    {"set", "NAME VALUE", "Sampling field by vLLM's name; without VALUE as the model has it", set},
    {"params", "", "Sampling as it is now", params},
    {"save", "FILE", "Write conversation and settings", save},
    {"load", "FILE", "Read them back", load},
    {"stats", "", "Counts since the start", stats},
    {"spec", "on|off|K|METHOD", "Speculation of the next answers: at most K drafts, or a drafter",
     spec},
    {"quit", "", "Leave", quit},
};

std::span<const ChatCommand> commands() { return kCommands; }

}  // namespace

ChatReply run_chat_command(const std::string& line, ChatState& state) {
  const size_t end = line.find_first_of(" \t\n");
  const std::string name = line.substr(1, end == std::string::npos ? end : end - 1);
  const size_t start = end == std::string::npos ? end : line.find_first_not_of(" \t\n", end);
  const std::string argument = start == std::string::npos ? "" : line.substr(start);
  std::vector<std::string> known;
  for (const ChatCommand& command : kCommands) {
    if (name == command.name || (name == "exit" && command.run == quit)) {
      return command.run(argument.substr(0, argument.find_last_not_of(" \t\n") + 1), state);
    }
    known.push_back("/" + std::string(command.name));
  }
  return fail("/" + name + " is unknown" +
              nearest_name_hint("/" + name, known, "; /help lists the commands"));
}

Result<SamplingParams> chat_sampling(const ChatState& state) {
  SamplingParams sampling = state.engine.default_sampling_params();
  FT_RETURN_IF_ERROR(state.sampling.apply(&sampling));
  return sampling;
}

}  // namespace foretoken
