#include "text/chat_traits.h"

#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;
using Prompt = std::optional<std::string>;

// Words that no template has. They are one word each: templates trim, split and capitalise.
constexpr const char* kFirst = "probeFirstWords";
constexpr const char* kSecond = "probeSecondWords";
constexpr const char* kQuestion = "probeQuestion";
constexpr const char* kAnswer = "probeAnswer";
constexpr const char* kTool = "probeTool";
constexpr const char* kParameter = "probeParameter";
constexpr const char* kProbeId = "probeId01";
constexpr const char* kUsualId = "call_probeId01probeId01";

bool has(const Prompt& prompt, std::string_view words) {
  return prompt && prompt->find(words) != std::string::npos;
}

size_t count(const std::string& text, std::string_view words) {
  size_t found = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++found;
  }
  return found;
}

json message(const char* role, json content) {
  return {{"role", role}, {"content", std::move(content)}};
}

json text_parts(const std::vector<const char*>& texts) {
  json parts = json::array();
  for (const char* text : texts) parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

// Whether the words of a part are shown, instead of the part as JSON or as Python prints it.
bool shows_part(const Prompt& prompt, const std::string& words) {
  return has(prompt, words) && !has(prompt, "'text': '" + words) &&
         !has(prompt, "\"text\": \"" + words) && !has(prompt, "\"text\":\"" + words) &&
         !has(prompt, "\\\"text\\\": \\\"" + words);
}

json tools() {
  const json parameter = {{"type", "string"}, {"description", "A value"}};
  const json parameters = {{"type", "object"},
                           {"properties", {{kParameter, parameter}}},
                           {"required", json::array({kParameter})}};
  return json::array(
      {{{"type", "function"},
        {"function",
         {{"name", kTool}, {"description", "Does a thing"}, {"parameters", parameters}}}}});
}

class Prober {
 public:
  explicit Prober(const ProbeRender& render) : render_(render) {}

  ChatTemplateTraits run() {
    traits_.takes_no_tools = shows_question();
    if (!traits_.takes_no_tools) plain_ = {{"tools", json::array()}};
    traits_.renders = shows_question();
    if (!traits_.renders) return nothing_known();
    traits_.user_content =
        forms([](json content) { return json::array({message("user", content)}); }, plain_);
    find_roles();
    find_tools();
    find_calls();
    return traits_;
  }

 private:
  // A conversation around a content.
  using Around = std::function<json(json content)>;

  Prompt plain(const json& messages) { return render_(messages, plain_); }
  Prompt with_tools(const json& messages) { return render_(messages, tools_); }

  static ChatTemplateTraits nothing_known() {
    ChatTemplateTraits traits;
    traits.renders = false;
    return traits;
  }

  bool shows_question() {
    for (const json& content : {json(kQuestion), text_parts({kQuestion})}) {
      if (has(plain(json::array({message("user", content)})), kQuestion)) return true;
    }
    return false;
  }

  void find_tools() {
    const Prompt asked = with_tools(json::array({question()}));
    traits_.shows_tools =
        has(asked, kTool) || has(with_tools(json::array({system(kFirst), question()})), kTool);
    traits_.takes_tools = asked.has_value() || traits_.shows_tools;
    if (!traits_.takes_tools) tools_ = plain_;
  }

  static json in_form(const char* text, const ChatContentForms& form) {
    return form.text ? json(text) : text_parts({text});
  }
  json question(const char* text = kQuestion) const {
    return message("user", in_form(text, traits_.user_content));
  }
  json system(const char* text) const {
    return message("system", in_form(text, traits_.system_content));
  }
  json answer() const { return message("assistant", in_form(kAnswer, traits_.assistant_content)); }

  // `arguments` go to the template beside the conversation.
  ChatContentForms forms(const Around& around, const json& arguments, bool* shown = nullptr) {
    ChatContentForms forms;
    const Prompt as_text = render_(around(kFirst), arguments);
    const Prompt as_part = render_(around(text_parts({kFirst})), arguments);
    const Prompt as_parts = render_(around(text_parts({kFirst, kSecond})), arguments);
    const bool one_part = shows_part(as_part, kFirst);
    forms.parts = one_part && shows_part(as_parts, kFirst) && shows_part(as_parts, kSecond);
    forms.text = has(as_text, kFirst) || !one_part;
    if (shown != nullptr) *shown = has(as_text, kFirst) || one_part;
    return forms;
  }

  void find_roles() {
    traits_.system_content = forms(
        [&](json content) {
          return json::array({message("system", std::move(content)), question()});
        },
        plain_, &traits_.shows_system);
    traits_.assistant_content = forms(
        [&](json content) {
          return json::array({question(), message("assistant", std::move(content)), question()});
        },
        plain_);
    const json silent = message("assistant", in_form("", traits_.assistant_content));
    traits_.takes_empty_answers =
        plain(json::array({question(), silent, question()})).has_value() ||
        !plain(json::array({question(), answer(), question()}));
    traits_.shows_repeated_roles =
        has_both(plain(json::array({question(kFirst), question(kSecond)})));
    json developer = system(kFirst);
    developer["role"] = "developer";
    traits_.shows_developer = has(plain(json::array({developer, question()})), kFirst);
    traits_.shows_several_systems =
        has_both(plain(json::array({system(kFirst), system(kSecond), question()})));
    traits_.shows_late_system = has_both(
        plain(json::array({system(kFirst), question(), answer(), system(kSecond), question()})));
  }

  static bool has_both(const Prompt& prompt) { return has(prompt, kFirst) && has(prompt, kSecond); }

  // What calls of the probes look like, as far as it is known.
  struct Call {
    bool object = true;
    json content = "";  // discarded: there is none
    json id = kProbeId;
  };

  json calls(const Call& call, const std::vector<const char*>& values) const {
    json list = json::array();
    for (const char* value : values) {
      const json arguments = {{kParameter, value}};
      json entry = {
          {"type", "function"},
          {"function",
           {{"name", kTool}, {"arguments", call.object ? arguments : json(arguments.dump())}}}};
      if (!call.id.is_null()) entry["id"] = id_of(call, list.size());
      list.push_back(std::move(entry));
    }
    json turn = message("assistant", call.content);
    if (call.content.is_discarded()) turn.erase("content");
    if (call.content.is_string() && !traits_.assistant_content.text) {
      turn["content"] = text_parts({call.content.get_ref<const std::string&>().c_str()});
    }
    turn["tool_calls"] = std::move(list);
    return turn;
  }

  static std::string id_of(const Call& call, size_t index) {
    std::string id = call.id.get<std::string>();
    id.back() = static_cast<char>('1' + index);
    return id;
  }

  json result(const Call& call, json content, size_t index = 0) const {
    json turn = message("tool", std::move(content));
    turn["name"] = kTool;
    if (!call.id.is_null()) turn["tool_call_id"] = id_of(call, index);
    return turn;
  }

  Prompt with_call(const Call& call) {
    return with_tools(json::array({question(), calls(call, {kFirst})}));
  }

  // Sets what is said about arguments, contents and ids, and the calls of later probes.
  bool find_call_form(Call* call) {
    Prompt as_object;
    Prompt as_text;
    for (const json& content : {json(""), json(nullptr), json(json::value_t::discarded)}) {
      *call = {true, content, kProbeId};
      as_object = with_call(*call);
      call->object = false;
      as_text = with_call(*call);
      if (has(as_object, kFirst) || has(as_text, kFirst)) break;
    }
    if (!has(as_object, kFirst) && !has(as_text, kFirst)) return false;
    const bool object_is_json =
        has(as_object, kFirst) && !has(as_object, "'" + std::string(kParameter) + "'");
    traits_.string_arguments = has(as_text, kFirst) && !has(as_text, "\\\"" + std::string(kFirst));
    traits_.object_arguments =
        object_is_json || (has(as_object, kFirst) && !traits_.string_arguments);
    call->object = traits_.object_arguments;
    return true;
  }

  bool takes_content(Call call, json content, const Prompt& usual) {
    call.content = std::move(content);
    const Prompt prompt = with_call(call);
    if (!has(prompt, kFirst)) return false;
    for (const char* nothing : {"None", "null"}) {
      if (count(*prompt, nothing) > count(*usual, nothing)) return false;
    }
    return true;
  }

  void find_calls() {
    Call call;
    traits_.shows_tool_calls = find_call_form(&call);
    traits_.shows_parallel_tool_calls = traits_.shows_tool_calls;
    if (traits_.shows_tool_calls) find_call_details(call);
    find_results(call);
  }

  void find_call_details(const Call& call) {
    const Prompt usual = with_call(call);
    traits_.empty_content = takes_content(call, "", usual);
    traits_.null_content = takes_content(call, nullptr, usual);
    traits_.absent_content = takes_content(call, json(json::value_t::discarded), usual);
    Call other = call;
    other.id = kUsualId;
    traits_.any_tool_call_id = shows_call_and_result(other) || !shows_call_and_result(call);
    other.id = nullptr;
    traits_.needs_tool_call_ids = !shows_call_and_result(other) && shows_call_and_result(call);
    other.id = "functions." + std::string(kTool) + ":0";
    traits_.names_calls_by_id = !shows_name(call) && shows_name(other);
    json thoughtful = calls(call, {kFirst});
    thoughtful["content"] = in_form(kAnswer, traits_.assistant_content);
    const bool shown = has(with_tools(json::array({question(), thoughtful})), kAnswer);
    thoughtful["reasoning_content"] = kSecond;
    traits_.shows_content_with_reasoning =
        !shown || has(with_tools(json::array({question(), thoughtful})), kAnswer);
    const json together = json::array({question(), calls(call, {kFirst, kSecond}),
                                       result(call, kAnswer, 0), result(call, kAnswer, 1)});
    traits_.shows_parallel_tool_calls =
        has_both(with_tools(together)) ||
        has_both(with_tools(json::array({question(), calls(call, {kFirst, kSecond})})));
  }

  bool shows_call_and_result(const Call& call) {
    const json turns = json::array(
        {question(), calls(call, {kFirst}), result(call, kAnswer), answer(), question()});
    return has(with_tools(turns), kFirst);
  }

  // Beside the list of tools.
  bool shows_name(const Call& call) {
    const Prompt tools_alone = with_tools(json::array({question()}));
    const Prompt called = with_call(call);
    return called && tools_alone && count(*called, kTool) > count(*tools_alone, kTool);
  }

  // A template that shows no calls may still show results.
  void find_results(const Call& call) {
    const json before = traits_.shows_tool_calls ? calls(call, {kAnswer}) : answer();
    traits_.tool_content = forms(
        [&](json content) {
          return json::array({question(), before, result(call, std::move(content))});
        },
        tools_, &traits_.shows_tool_results);
  }

  const ProbeRender& render_;
  json plain_ = json::object();  // the variables of a conversation without tools
  json tools_ = {{"tools", tools()}};
  ChatTemplateTraits traits_;
};

}  // namespace

ChatTemplateTraits probe_chat_traits(const ProbeRender& render) { return Prober(render).run(); }

}  // namespace foretoken
