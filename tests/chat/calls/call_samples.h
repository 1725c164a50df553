#pragma once
#include <string>
#include <vector>

namespace foretoken {

// Texts with calls as the models of a parser write them.
struct CallSample {
  std::string parser;
  std::string text;
  std::vector<std::string> markers;  // which no content may hold
};

inline const std::vector<CallSample>& call_samples() {
  static const std::string object =
      R"({"name": "get_weather", "arguments": {"city": "Pa\"r\u00edsé {[", "days": 3, )"
      R"("where": {"a": [1.5, true, null, []]}}})";
  static const std::string arguments =
      R"({"city": "Pa\"r\ud83d\ude00is", "days": -3, "where": {"a": [1.5e2, true, null]}})";
  static const std::string values =
      "[get_weather(city='Pa\\'ris \\u00e9', days=3, where={'a': [1, None, True]}), now()]";
  static const auto elements = [](const std::string& section) {
    return "Hm.\n<" + section + ">\n<function=get_weather>\n<parameter=city>\nPa\"ris\n</b>\n" +
           "</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=where>\n{\"a\": [1]}\n" +
           "</parameter>\n</function>\n</" + section + ">\n<" + section +
           ">\n<function=now>\n</function>\n</" + section + ">";
  };
  static const auto invokes = [](const std::string& p, const std::string& open,
                                 const std::string& close, const std::string& attribute) {
    return "Hm." + open + "\n<" + p + "invoke name=\"get_weather\">\n<" + p +
           "parameter name=\"city\"" + attribute + ">Pa\"ris</" + p + "parameter>\n<" + p +
           "parameter name=\"days\">3</" + p + "parameter>\n</" + p + "invoke>\n<" + p +
           "invoke name=\"now\">\n</" + p + "invoke>\n" + close;
  };
  const auto marked = [](const std::string& open, const std::string& close) {
    return "Hm. " + open + "\n" + object + "\n" + close + "\n" + open + "[" + object + ", " +
           object + "]" + close;
  };
  static const std::vector<CallSample> samples = {
      {"hermes", marked("<tool_call>", "</tool_call>"), {"<tool_call>", "</tool_call>"}},
      {"longcat",
       marked("<longcat_tool_call>", "</longcat_tool_call>"),
       {"<longcat_tool_call>", "</longcat_tool_call>"}},
      {"jamba", marked("<tool_calls>", "</tool_calls>"), {"<tool_calls>", "</tool_calls>"}},
      {"minimax",
       "Hm.\n<tool_calls>\n" + object + "\n" + object + "\n</tool_calls>",
       {"<tool_calls>", "</tool_calls>"}},
      {"internlm",
       marked("<|action_start|><|plugin|>", "<|action_end|>"),
       {"<|action_start|><|plugin|>", "<|action_end|>"}},
      {"cohere_command3",
       marked("<|START_ACTION|>", "<|END_ACTION|>"),
       {"<|START_ACTION|>", "<|END_ACTION|>"}},
      {"granite-20b-fc", marked("<function_call>", ""), {"<function_call>"}},
      {"granite", "<|tool_call|>[" + object + "]", {"<|tool_call|>"}},
      {"granite", "[" + object + "]", {}},
      {"phi4_mini_json", "functools[" + object + ", " + object + "]", {"functools["}},
      {"xlam", "[" + object + "]", {}},
      {"generic", marked("<tool_call>", "</tool_call>"), {"<tool_call>", "</tool_call>"}},
      {"generic", object, {}},
      {"llama3_json", object + "; " + object, {"<|python_tag|>"}},
      {"llama3_json", "<|python_tag|>" + object, {"<|python_tag|>"}},
      {"mistral",
       "Hm.[TOOL_CALLS]get_weather[CALL_ID]abc123XYZ[ARGS]" + arguments + "[TOOL_CALLS]now{}",
       {"[TOOL_CALLS]"}},
      {"mistral", "[TOOL_CALLS] [" + object + "]", {"[TOOL_CALLS]"}},
      {"pythonic", values, {}},
      {"llama4_pythonic", "<|python_start|>" + values + "<|python_end|>", {"<|python_start|>"}},
      {"lfm2", "<|tool_call_start|>" + values + "<|tool_call_end|>", {"<|tool_call_start|>"}},
      {"olmo3",
       "<function_calls>\nget_weather(city=\"Pa'ris\")\nnow()\n</function_calls>",
       {"<function_calls>", "</function_calls>"}},
      {"qwen3_coder", elements("tool_call"), {"<tool_call>", "</tool_call>"}},
      {"seed_oss", elements("seed:tool_call"), {"<seed:tool_call>", "</seed:tool_call>"}},
      {"minimax_m2",
       invokes("", "<minimax:tool_call>", "</minimax:tool_call>", ""),
       {"<minimax:tool_call>", "</minimax:tool_call>"}},
      {"deepseek_v32",
       invokes("｜DSML｜", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>",
               " string=\"true\""),
       {"<｜DSML｜function_calls>", "</｜DSML｜function_calls>"}},
      {"deepseek_v41",
       invokes("｜DSML｜ ", "<｜DSML｜ calls>", "</｜DSML｜ calls>", " string=\"true\""),
       {"<｜DSML｜ calls>", "</｜DSML｜ calls>"}},
      {"dots",
       invokes("", "<dots_function_call>", "</dots_function_call>", ""),
       {"<dots_function_call>", "</dots_function_call>"}},
      {"step3",
       invokes("steptml:", "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>",
               "<｜tool_call_end｜><｜tool_calls_end｜>", ""),
       {"<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"}},
      {"glm45",
       "Hm.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Pa\"ris</arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>now</"
       "tool_call>",
       {"<tool_call>", "</tool_call>"}},
      {"deepseek_v3",
       "Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```"
       "json\n" +
           arguments +
           "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
           "<｜tool▁calls▁end｜>",
       {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>"}},
      {"kimi_k2",
       "Hm.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
       "<|tool_call_argument_begin|>" +
           arguments +
           "<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}"
           "<|tool_call_end|><|tool_calls_section_end|>",
       {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
        "<|tool_call_end|>"}},
      {"kimi_k3",
       "Hm.<|open|>tools<|sep|><|open|>call tool=\"get_weather\" index=\"1\"<|sep|>"
       "<|open|>argument key=\"city\" type=\"string\"<|sep|>Pa\"ris<|close|>argument<|sep|>"
       "<|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|>"
       "<|close|>call<|sep|><|open|>call tool=\"now\" index=\"2\"<|sep|><|close|>call<|sep|>"
       "<|close|>tools<|sep|>",
       {"<|open|>tools<|sep|>", "<|close|>tools<|sep|>"}},
      {"minimax_m3",
       "Hm.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get_weather\">"
       "]<]minimax[>[<city>Pa\"ris]<]minimax[>[</city>\n]<]minimax[>[<where>]<]minimax[>[<a>"
       "]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</a>]<]minimax[>[</where>"
       "]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[</invoke>\n"
       "]<]minimax[>[<invoke name=\"now\">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
       {"]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"}},
      {"hy_v3",
       "Hm.<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n"
       "<arg_value>Pa\"ris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n"
       "</tool_call>\n<tool_call>now<tool_sep>\n</tool_call>\n</tool_calls>",
       {"<tool_calls>", "</tool_calls>"}},
      {"k2_horizon",
       "Hm.<ifm|tool_calls>\n<ifm|tool_call>get_weather\n<ifm|arg_key>city</ifm|arg_key>"
       "<ifm|arg_value>Pa\"ris</ifm|arg_value>\n<ifm|arg_key>days</ifm|arg_key>\n"
       "<ifm|arg_value>3</ifm|arg_value></ifm|tool_call>\n<ifm|tool_call>now</ifm|tool_call>\n"
       "</ifm|tool_calls>",
       {"<ifm|tool_calls>", "</ifm|tool_calls>"}},
      {"k2_horizon",
       "Hm.<ifm|tool_calls>\n<ifm|tool_call>" + object + "</ifm|tool_call>\n</ifm|tool_calls>",
       {"<ifm|tool_calls>", "</ifm|tool_calls>"}},
      {"hy_v4",
       "Hm.<tool_calls:6124c78e>\n<tool_call:6124c78e>get_weather<arg_key:6124c78e>city"
       "</arg_key:6124c78e><arg_value:6124c78e>Pa\"ris</arg_value:6124c78e>"
       "</tool_call:6124c78e>\n<tool_call:6124c78e>now</tool_call:6124c78e>\n"
       "</tool_calls:6124c78e>",
       {"<tool_calls:6124c78e>", "</tool_calls:6124c78e>"}},
      {"minicpm5",
       "Hm.<function name=\"get_weather\"><param name=\"city\"><![CDATA[Pa\"r</param>is]]></param>"
       "<param name=\"days\">3</param></function>\n<function name=\"now\"></function>",
       {"<function name=\"", "</function>"}},
      {"apertus",
       "Hm.<|tools_prefix|>[{\"get_weather\": " + arguments + "}, {\"now\": {}}]<|tools_suffix|>",
       {"<|tools_prefix|>", "<|tools_suffix|>"}},
      {"gigachat3",
       "Hm.<|message_sep|>function call<|role_sep|>\n" + object,
       {"function call<|role_sep|>\n"}},
      {"gigachat3", "Hm.<|function_call|>" + object, {"<|function_call|>"}},
      {"ling3",
       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</"
       "tool_call>",
       {"<tool_call>", "</tool_call>"}},
      {"poolside_v1",
       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</"
       "tool_call>",
       {"<tool_call>", "</tool_call>"}},
      {"openai",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.get_weather <|constrain|>json<|message|>" +
           arguments + "<|call|>",
       {"<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|constrain|>", "<|call|>"}},
      {"inkling",
       "<|content_thinking|>Hm.<|end_message|><|message_model|>get_weather"
       "<|content_invoke_tool_json|>{\"name\": \"get_weather\", \"args\": " +
           arguments +
           "}<|end_message|><|message_model|><|content_invoke_tool_json|>{\"name\": \"now\"}"
           "<|content_model_end_sampling|>",
       {"<|message_model|>", "<|content_thinking|>", "<|content_text|>", "<|end_message|>",
        "<|content_invoke_tool_json|>", "<|content_model_end_sampling|>"}},
      {"muse_glimmer",
       " to=self<|message|>Hm.<|eom|><|start|>assistant to=get_weather<|message|>" +
           invokes("atem:", "<atem:function_calls>", "</atem:function_calls>", "").substr(3) +
           "<|eot|>",
       {"<|start|>", "<|message|>", "<|eom|>", "<|eot|>"}},
      {"gemma4",
       "Hm.<|tool_call>call:get_weather{city:<|\"|>Pa\"ris<|\"|>,days:3,where:{a:[1,true,null]}}"
       "<tool_call|><|tool_call>call:now{}<tool_call|>",
       {"<|tool_call>", "<tool_call|>"}},
      {"functiongemma",
       "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}"
       "<end_function_call>",
       {"<start_function_call>", "<end_function_call>"}},
  };
  return samples;
}

}  // namespace foretoken
