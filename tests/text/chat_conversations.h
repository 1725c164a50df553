#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foretoken::test {

// A conversation as some client sends it, with the words that the model must see of it.
struct Conversation {
  std::string name;
  nlohmann::ordered_json messages;
  std::vector<std::string> words;
  bool has_tools = true;
};

inline const nlohmann::ordered_json& weather_tools() {
  static const auto tools = nlohmann::ordered_json::parse(R"([{"type": "function", "function": {
      "name": "weather_of_place", "description": "Tells the weather",
      "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "Where"}}, "required": ["place"]}}}])");
  return tools;
}

// What agents and chats send in second turns. WORDS names stand in `words`.
inline std::vector<Conversation> conversations() {
  using json = nlohmann::ordered_json;
  const auto call = [](const std::string& arguments, const std::string& id = "call_A1b2C3d4E5f6") {
    return R"({"id": ")" + id +
           R"(", "type": "function", "function": {"name": "weather_of_place", "arguments": )" +
           arguments + "}}";
  };
  const auto turn = [](const std::string& content, const std::string& calls) {
    return R"({"role": "assistant", )" + content + R"("tool_calls": [)" + calls + "]}";
  };
  const auto result = [](const std::string& content, const std::string& id = "call_A1b2C3d4E5f6") {
    return R"({"role": "tool", "tool_call_id": ")" + id + R"(", "content": )" + content + "}";
  };
  const std::string ask = R"({"role": "user", "content": "askWords of the user"})";
  const std::string more = R"({"role": "user", "content": "moreWords of the user"})";
  const std::string told = R"({"role": "assistant", "content": "toldWords of the answer"})";
  const std::string paris = call(R"("{\"place\": \"placeWords\"}")");
  const std::string sunny = result(R"("resultWords of the tool")");
  const std::vector<std::string> all = {"askWords", "placeWords", "resultWords"};
  const auto talk = [](const std::vector<std::string>& turns) {
    std::string text;
    for (const std::string& one : turns) text += (text.empty() ? "[" : ",") + one;
    return json::parse(text + "]");
  };
  const std::string none;
  const std::string null = R"("content": null, )";
  const std::string second = call(R"("{\"place\": \"otherWords\"}")", "call_B1b2C3d4E5f6");
  const std::string parts =
      R"([{"type": "text", "text": "resultWords one"}, {"type": "text", "text": "partWords two"}])";
  const auto role = [](const std::string& name, const std::string& words) {
    return R"({"role": ")" + name + R"(", "content": ")" + words + R"("})";
  };
  std::vector<Conversation> made = {
      {"null content", talk({ask, turn(null, paris), sunny}), all},
      {"no content", talk({ask, turn(none, paris), sunny}), all},
      {"empty content", talk({ask, turn(R"("content": "", )", paris), sunny}), all},
      {"content beside calls",
       talk({ask, turn(R"("content": "besideWords of it", )", paris), sunny}),
       {"askWords", "placeWords", "resultWords", "besideWords"}},
      {"content and reasoning beside calls",
       talk({ask,
             turn(R"("reasoning_content": "I must look", "content": "besideWords of it", )", paris),
             sunny}),
       {"askWords", "placeWords", "resultWords", "besideWords"}},
      {"answered",
       talk({ask, turn(null, paris), sunny, told, more}),
       {"askWords", "placeWords", "resultWords", "toldWords", "moreWords"}},
      {"interrupted",
       talk({ask, turn(null, paris), sunny, more}),
       {"askWords", "placeWords", "resultWords", "moreWords"}},
      {"result as parts",
       talk({ask, turn(null, paris), result(parts)}),
       {"askWords", "placeWords", "resultWords", "partWords"}},
      {"result as object", talk({ask, turn(null, paris), result(R"("{\"is\": \"resultWords\"}")")}),
       all},
      {"null result", talk({ask, turn(null, paris), result("null")}), {"askWords", "placeWords"}},
      {"parallel calls",
       talk({ask, turn(null, paris + "," + second), sunny,
             result(R"("secondWords of the tool")", "call_B1b2C3d4E5f6"), told, more}),
       {"askWords", "placeWords", "otherWords", "resultWords", "secondWords", "moreWords"}},
      {"two rounds",
       talk({ask, turn(null, paris), sunny, turn(null, second),
             result(R"("secondWords of the tool")", "call_B1b2C3d4E5f6")}),
       {"askWords", "placeWords", "otherWords", "resultWords", "secondWords"}},
      {"no ids", json::parse(R"([{"role": "user", "content": "askWords"},
          {"role": "assistant", "tool_calls": [{"type": "function", "function":
             {"name": "weather_of_place", "arguments": {"place": "placeWords"}}}]},
          {"role": "tool", "content": "resultWords"}])"),
       all},
      {"system",
       talk({role("system", "systemWords"), ask, turn(null, paris), sunny}),
       {"systemWords", "askWords", "placeWords", "resultWords"}},
  };
  for (const char* arguments :
       {R"("")", "null", R"("{\"a")", R"("[1]")", "{}", R"("null")", R"("\n")"}) {
    made.push_back({std::string("arguments ") + arguments,
                    talk({ask, turn(null, call(arguments)), sunny, told, more}),
                    {"askWords", "weather_of_place", "resultWords", "toldWords", "moreWords"}});
  }
  made.push_back({"broken arguments",
                  talk({ask, turn(null, call(R"("{\"a\": \"brokenWords")")), sunny}),
                  {"brokenWords", "resultWords"}});
  const std::vector<Conversation> chats = {
      {"developer",
       talk({role("developer", "systemWords"), ask}),
       {"systemWords", "askWords"},
       false},
      {"two systems",
       talk({role("system", "systemWords"), role("system", "otherWords"), ask}),
       {"systemWords", "otherWords", "askWords"},
       false},
      {"system and developer",
       talk({role("system", "systemWords"), role("developer", "otherWords"), ask, told, more}),
       {"systemWords", "otherWords", "askWords", "toldWords", "moreWords"},
       false},
      {"late system",
       talk({role("system", "systemWords"), ask, told, role("system", "lateWords"), more}),
       {"systemWords", "lateWords", "askWords", "moreWords"},
       false},
      {"only a late system",
       talk({ask, told, role("system", "lateWords"), more}),
       {"lateWords", "askWords", "moreWords"},
       false},
      {"system parts",
       json::parse(R"([{"role": "system", "content": [{"type": "text", "text": "systemWords"}]},
           {"role": "user", "content": [{"type": "text", "text": "askWords"},
                                        {"type": "text", "text": "moreWords"}]}])"),
       {"systemWords", "askWords", "moreWords"},
       false},
      {"two questions", talk({ask, more}), {"askWords", "moreWords"}, false},
      {"an answer of thoughts alone",
       talk({ask, R"({"role": "assistant", "content": null, "reasoning_content": "hm"})", more}),
       {"askWords", "moreWords"},
       false},
  };
  made.insert(made.end(), chats.begin(), chats.end());
  return made;
}

}  // namespace foretoken::test
