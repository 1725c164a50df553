#include <spdlog/fmt/fmt.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "apps/chat/chat_answer.h"
#include "apps/chat/chat_commands.h"
#include "apps/chat/line_input.h"
#include "apps/flags/flag_table.h"
#include "apps/options/commands.h"
#include "apps/options/engine_options.h"
#include "apps/options/template_options.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"
#include "apps/terminal/terminal_style.h"

namespace foretoken {
namespace {

struct ChatOptions {
  EngineOptions engine;
  SamplingFlags sampling;
  TemplateOptions chat_template;
  SpeculativeParams speculative;
  std::string system;
  std::string color = "auto";
  std::string history_file = default_history_file();
};

// A question may have several lines.
class QuestionReader {
 public:
  explicit QuestionReader(const std::string& history_file) : input_(history_file) {}

  bool terminal() const { return input_.terminal(); }

  LineInput::Read next(std::string* question) {
    question->clear();
    bool block = false;
    while (true) {
      std::string line;
      const LineInput::Read read = input_.next(question->empty() && !block ? "> " : ". ", &line);
      if (read == LineInput::Read::kEnd && !question->empty()) return finish(*question);
      if (read != LineInput::Read::kLine) return read;
      const bool fence = line == "\"\"\"";
      if (fence && block) return finish(*question);
      if (fence && question->empty()) {
        block = true;
        continue;
      }
      const bool goes_on = !block && !line.empty() && line.back() == '\\';
      if (goes_on) line.pop_back();
      *question += line;
      if (!goes_on && !block) return finish(*question);
      *question += "\n";
    }
  }

 private:
  LineInput::Read finish(std::string& question) {
    while (!question.empty() && question.back() == '\n') question.pop_back();
    input_.remember(question);
    return LineInput::Read::kLine;
  }

  LineInput input_;
};

class Chat {
 public:
  Chat(const ChatOptions& options, ChatState& state)
      : state_(state),
        questions_(options.history_file),
        style_(TerminalStyle::choose(options.color)) {}

  // The exit code.
  int run() {
    if (!state_.session.has_template()) {
      note("the model has no chat template: it goes on with the plain text of the conversation");
    }
    if (questions_.terminal()) note("/help lists the commands, Ctrl-D leaves");
    while (true) {
      std::string question;
      const LineInput::Read read = questions_.next(&question);
      if (read == LineInput::Read::kEnd) return leave(0);
      if (read == LineInput::Read::kInterrupted) {
        if (must_end()) return leave(interrupt_exit_code());
        continue;
      }
      if (!take(question)) return leave(0);
      if (interrupt_flag().load() && must_end()) return leave(interrupt_exit_code());
    }
  }

 private:
  // Ctrl-C at the prompt of a terminal only gives a new line.
  bool must_end() {
    if (interrupt_signal() != SIGINT || !questions_.terminal()) return true;
    clear_interrupt();
    std::fputs("\n", stdout);
    return false;
  }

  int leave(int code) {
    if (questions_.terminal()) std::fputs("\n", stdout);
    return code;
  }

  // False when the chat ends.
  bool take(const std::string& question) {
    if (question.find_first_not_of(" \t\n") == std::string::npos) return true;
    const bool command = question.front() == '/' && question.rfind("//", 0) != 0;
    if (command) {
      const ChatReply reply = run_chat_command(question, state_);
      show(reply);
      if (reply.action == ChatAction::kAnswer) answer();
      return reply.action != ChatAction::kQuit;
    }
    state_.session.add("user", question.front() == '/' ? question.substr(1) : question);
    if (!answer()) state_.session.undo();
    return true;
  }

  void show(const ChatReply& reply) {
    if (reply.failed) return report_error(reply.text);
    if (!reply.text.empty()) std::fputs((reply.text + "\n").c_str(), stdout);
    std::fflush(stdout);
  }

  void note(const std::string& text) {
    std::fflush(stdout);
    std::fputs((style_.dim(text) + "\n").c_str(), stderr);
  }

  Result<Request> make_request() {
    Request request;
    FT_ASSIGN_OR_RETURN(request.sampling, chat_sampling(state_));
    const int max_len = state_.engine.info().max_model_len;
    const bool limited = state_.sampling.fields.contains("max_tokens") ||
                         request.sampling.max_tokens != SamplingParams().max_tokens;
    const int wanted = limited ? std::min(request.sampling.max_tokens, max_len / 2) : max_len / 4;
    FT_ASSIGN_OR_RETURN(const ChatSession::Prompt prompt, state_.session.make_prompt(wanted));
    if (prompt.num_dropped > 0) {
      note(fmt::format("(the {} oldest messages were forgotten to stay within max_model_len {})",
                       prompt.num_dropped, max_len));
    }
    request.prompt = prompt.text;
    request.add_special_tokens = !state_.session.has_template();
    request.speculative = state_.speculative;
    if (!limited) request.sampling.max_tokens = max_len - prompt.num_tokens;
    request.sampling.min_tokens =
        std::min(request.sampling.min_tokens, request.sampling.max_tokens);
    return request;
  }

  // False when the question could not be answered at all.
  bool answer() {
    Result<Request> request = make_request();
    if (!request.ok()) {
      report_error(request.status().message());
      return false;
    }
    const ChatAnswer answer = stream_answer(state_.engine, std::move(request).value(), style_);
    if (interrupt_signal() == SIGINT) clear_interrupt();
    if (!answer.status.ok()) {
      report_error(answer.status.message());
      return false;
    }
    state_.session.add("assistant", answer.text);
    note(answer_line(answer, !state_.engine.info().drafters.empty()));
    return true;
  }

  ChatState& state_;
  QuestionReader questions_;
  const TerminalStyle style_;
};

// What a chat cannot have.
Status check_options(const ChatOptions& options) {
  FT_RETURN_IF_ERROR(options.sampling.check());
  if (options.sampling.fields.value("n", 1) != 1) {
    return invalid_argument("a chat has one answer; leave --n out");
  }
  if (!options.sampling.fields.value("detokenize", true)) {
    return invalid_argument("a chat needs text; leave --no-detokenize out");
  }
  return {};
}

Result<int> run_chat(const ChatOptions& options) {
  FT_RETURN_IF_ERROR(check_options(options));
  FT_ASSIGN_OR_RETURN(const std::string arguments, options.chat_template.arguments_json());
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  ChatState state = {*engine, ChatSession(*engine, arguments), options.sampling,
                     options.speculative};
  state.session.set_system(options.system);
  return Chat(options, state).run();
}

int chat(const ChatOptions& options) {
  // More than two: quick presses must not end the session.
  catch_interrupts(5);
  const Result<int> code = run_chat(options);
  if (code.ok()) return code.value();
  if (interrupt_flag().load()) return report_interrupt("while loading");
  report_error(code.status().message());
  return kExitError;
}

}  // namespace

void add_chat_command(CLI::App& app, std::function<int()>* run) {
  auto options = std::make_shared<ChatOptions>();
  options->engine.config.measure_when_idle = true;
  CLI::App* command = app.add_subcommand("chat", "Talk with a model in the terminal");
  command->add_option("--system", options->system, "System text of the conversation");
  command
      ->add_option("--color", options->color,
                   "Tint accepted drafts: auto (on a terminal, unless NO_COLOR is set), always or "
                   "never")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command
      ->add_option("--history-file", options->history_file,
                   "Where entered lines are kept; empty: nowhere")
      ->type_name(kFileType)
      ->capture_default_str();
  options->sampling.max_tokens_default = "what is left of the context";
  options->sampling.add_to(*command);
  options->chat_template.add_to(*command);
  add_speculative_flag(*command, options->speculative);
  options->engine.log_level = "warning";
  options->engine.add_to(*command);
  command->callback([options, run] { *run = [options] { return chat(*options); }; });
}

}  // namespace foretoken
