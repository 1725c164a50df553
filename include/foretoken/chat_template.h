#pragma once
#include <string>

namespace foretoken {

// In which form a template shows the content of a role's messages.
struct ChatContentForms {
  bool text = true;    // a string
  bool parts = false;  // a list of {"type": "text", "text"}, every one of them
};

// What a chat template can do, found by rendering small conversations and looking for their words
// in the prompt. "Shows": the words reach the prompt and nothing is refused.
struct ChatTemplateTraits {
  std::string source;  // the Jinja text

  bool renders = true;         // a question alone; where it is false nothing below was found
  bool shows_tools = true;     // the variable `tools`
  bool takes_tools = true;     // without a failure, shown or not
  bool takes_no_tools = true;  // `tools` may be none; else it must be a list, empty or not

  // Of earlier turns. Without `shows_tool_calls` all that is said of calls here has its default.
  bool shows_tool_calls = true;
  bool shows_parallel_tool_calls = true;
  bool shows_tool_results = true;  // messages of the role "tool"
  bool object_arguments = true;    // a call's arguments as a JSON object
  bool string_arguments = false;   // as JSON text, which stays as it is
  bool null_content = true;        // beside calls
  bool absent_content = true;      // beside calls
  bool empty_content = true;       // beside calls
  bool any_tool_call_id = true;    // else only nine letters and digits
  bool needs_tool_call_ids = false;
  bool names_calls_by_id = false;  // ids "functions.NAME:INDEX" are all that shows a call's name
  bool shows_content_with_reasoning = true;  // beside calls

  bool takes_empty_answers = true;  // without words and calls
  bool shows_system = true;
  bool shows_developer = true;  // the role, with a meaning of its own or as any other
  bool shows_several_systems = true;
  bool shows_late_system = true;     // a system message behind the first answer
  bool shows_repeated_roles = true;  // two questions without an answer between them

  ChatContentForms system_content;
  ChatContentForms user_content;
  ChatContentForms assistant_content;
  ChatContentForms tool_content;
};

}  // namespace foretoken
