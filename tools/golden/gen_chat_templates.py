"""Makes tests/text/data/chat_templates/: what Hugging Face transformers renders.

    python3 tools/golden/gen_chat_templates.py

Needs transformers and jinja2. Every template of the folder is rendered with every case of
cases(). language.json holds templates that ask what Jinja and Python mean, with the "x" they use.
Most results are kept as a digest (64-bit FNV-1a and length in bytes), a few in full. A result is
one of
    ["text", TEXT]   ["digest", HEX, BYTES]   ["refuses", WORDS]   ["fails"]
where "refuses" is the template's own raise_exception and "fails" any other error.
"""

import datetime
import json
import os
import pathlib
import time

import jinja2
from transformers.utils import chat_template_utils

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "data" / "chat_templates"
NOW = datetime.datetime(2025, 11, 21, 12, 0, 0)
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
IN_FULL = {"multi_turn", "tool_round", "parts", "thinking_off", "odd_text"}

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather in a place, in °C & <b>mm</b>",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": " The city's \"name\" "},
        "days": {"type": "integer", "description": "How many", "default": 3},
        "unit": {"type": "string", "enum": ["c", "f"], "description": "Unit", "default": "c"}},
        "required": ["city"]}}}
SCHEMA = {"type": "function", "function": {
    "name": "plan", "description": "Plans",
    "parameters": {"type": "object", "properties": {
        "items": {"type": "array", "description": "Stops", "items": {"type": "object", "properties": {
            "lat": {"type": "number"}, "keys": {"type": "array", "items": {"type": "string"}}},
            "required": ["lat"]}},
        "values": {"type": ["string", "null"], "description": "日本語"},
        "mode": {"oneOf": [{"type": "string", "default": "x"}, {"type": "integer", "description": "n"}],
                 "description": "Mode"},
        "limit": {"type": "number", "description": "Limit", "default": 1.5, "nullable": True},
        "flag": {"type": "boolean", "description": "Flag", "default": False},
        "bare": {"type": "array", "description": "Anything"},
        "map": {"type": "object", "description": "Map", "additionalProperties": {"type": "number"}}},
        "required": ["items", "flag"]},
    "return": {"type": "string", "description": "The plan"}}}
EMPTY = {"type": "function", "function": {"name": "ping", "description": "Pings",
                                          "parameters": {"type": "object", "properties": {}}}}


def user(content="What is 2 + 2?"):
    return {"role": "user", "content": content}


def assistant(content="It is 4.", **more):
    return {"role": "assistant", "content": content, **more}


def system(content="You are helpful."):
    return {"role": "system", "content": content}


def tool_call(arguments, name="get_weather", id="call12345"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(content="21 °C", id="call12345", name="get_weather"):
    return {"role": "tool", "content": content, "tool_call_id": id, "name": name}


def text_parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


ARGUMENTS = {"city": "São Paulo", "days": 2, "ratio": 0.1, "big": 1e20, "deep": {"a": [1, None, True]},
             "list": ["x", "y's"], "none": None, "no": False}
ROUND = [user("Weather?"), assistant("", tool_calls=[tool_call(ARGUMENTS)]), tool()]
THOUGHTS = [user(), assistant("Four.", reasoning_content="Two and two."), user("And 3 + 3?"),
            assistant("Six.", reasoning_content="\nThree\n")]


def plain_cases():
    """name: messages."""
    return {
        "plain": [user()],
        "system": [system(), user()],
        "multi_turn": [user(), assistant(), user("And 3 + 3?")],
        "system_multi_turn": [system(), user(), assistant(), user("Why?"), assistant("So.")],
        "parts": [user(text_parts("One ", "two."))],
        "all_parts": [system(text_parts("Be kind.")), user(text_parts("Hi")),
                      assistant(text_parts("Yes?")), user(text_parts("Bye", "!"))],
        "image": [user([{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "x"}}])],
        "image_first": [user([{"type": "image"}, {"type": "text", "text": "See"}])],
        "three_parts": [user([{"type": "text", "text": "b"}, {"type": "image"}, {"type": "text", "text": "a"}])],
        "odd_part": [user([{"type": "audio", "audio": "x"}])],
        "odd_text": [system("  \n\x1c sys <&> \t"), user(" \u00a0\u2003 “日本” 'x' \"y\" \\n {{ a }} 😀 \x1f\n"),
                     assistant("\n\n ok\u3000"), user("\t")],
        "think_tags": [user(), assistant("<think>\nHm.\n</think>\n\nFour."), user("Sure?")],
        "think_last": [user(), assistant("<think>Hm.</think>Four.")],
        "think_open": [user(), assistant("<think>Hm.")],
        "reasoning": THOUGHTS,
        "reasoning_then_user": THOUGHTS + [user("Thanks")],
        "thinking_field": [user(), assistant("Four.", thinking="Two and two.")],
        "thinking_parts": [user(), assistant([{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "4"}])],
        "no_messages": [],
        "only_system": [system()],
        "assistant_first": [assistant(), user()],
        "two_users": [user(), user("Again")],
        "two_systems": [system(), system("Second"), user()],
        "late_system": [user(), system("Late"), user("Go on")],
        "unknown_role": [user(), {"role": "critic", "content": "Bad"}],
        "developer": [{"role": "developer", "content": "Rules"}, user()],
        "context": [{"role": "context", "content": " Facts "}, user()],
        "null_content": [user(), {"role": "assistant", "content": None}, user("?")],
        "no_content": [user(), {"role": "assistant"}, user("?")],
        "number_content": [{"role": "user", "content": 5}],
        "empty_content": [user(""), assistant(""), user(" ")],
        "no_role": [{"content": "Hi"}],
        "names": [{"role": "user", "name": "Ann", "content": "Hi"}, assistant(name="Bot"), user()],
        "slash_think": [system("Short. /no_think"), user("Hi /think")],
        "tool_only": [tool()],
        "channel": [user(), assistant("<|channel|>final<|message|>x"), user()],
        "tool_response_user": [user(), assistant(), user("<tool_response>\nx\n</tool_response>")],
    }


def tool_cases():
    """name: messages, beside which a tool is passed."""
    both = [assistant("Both.", tool_calls=[tool_call(ARGUMENTS), tool_call({}, "plan", "call67890")]),
            tool(), tool("[1, 2]", "call67890", "plan")]
    return {
        "tools": [user()], "tools_system": [system(), user()],
        "tools_multi_turn": [system(), user(), assistant(), user("More")],
        "tools_parts": [system(text_parts("S")), user(text_parts("U"))],
        "tool_round": ROUND, "tool_answer": ROUND + [assistant("Warm.")],
        "tool_then_user": ROUND + [assistant("Warm."), user("Thanks")],
        "tool_calls_pending": ROUND[:2],
        "two_calls": [user("Weather?")] + both,
        "two_calls_answer": [system(), user("W?")] + both + [assistant("Done."), user("Again")] + both,
        "two_rounds": ROUND + ROUND[1:],
        "string_arguments": [user("W?"), assistant(None, tool_calls=[tool_call(json.dumps(ARGUMENTS))]), tool()],
        "no_arguments": [user("W?"), assistant("", tool_calls=[tool_call("")]), tool()],
        "bare_call": [user("W?"), assistant("", tool_calls=[{"name": "ping", "arguments": {"a": 1}}]), tool()],
        "call_no_id": [user("W?"), assistant("", tool_calls=[{"type": "function", "function":
                       {"name": "ping", "arguments": {}}}]), {"role": "tool", "content": "pong"}],
        "call_no_content": [user("W?"), {"role": "assistant", "tool_calls": [tool_call({"city": "x"})]}, tool()],
        "tool_parts": ROUND[:2] + [tool(text_parts("21", " °C"))],
        "tool_object": ROUND[:2] + [tool({"temp": 21.0, "ok": True})],
        "tool_list": ROUND[:2] + [tool([1, None])],
        "ipython": ROUND[:2] + [{"role": "ipython", "content": "21"}],
        "call_reasoning": [user("W?"), assistant("", reasoning_content="I must look.",
                           tool_calls=[tool_call({"city": "x"})]), tool()],
        "call_content_reasoning": [user("W?"), assistant("Wait.", reasoning_content="Look.",
                                   tool_calls=[tool_call({"city": "x"})]), tool(), assistant("Warm.")],
        "empty_calls": [user(), assistant("x", tool_calls=[]), user()],
        "null_calls": [user(), assistant("x", tool_calls=None), user()],
    }


OPTIONS = {
    "thinking_on": {"enable_thinking": True, "thinking": True},
    "thinking_off": {"enable_thinking": False, "thinking": False},
    "effort": {"thinking": True, "reasoning_effort": "high", "model_identity": "You are X."},
    "effort_max": {"thinking": True, "reasoning_effort": "max", "drop_thinking": False},
    "builtin": {"builtin_tools": ["browser", "python", "code_interpreter"], "date_string": "1 Jan 2030"},
    "custom": {"custom_tools": [WEATHER, SCHEMA], "tools_in_user_message": False},
    "flags": {"add_vision_id": True, "preserve_thinking": True, "clear_thinking": False},
    "shadow": {"bos_token": "<other>", "extra": {"a": 1}},
}


def cases():
    """name: {messages, and what else is passed}."""
    found = {name: {"messages": messages} for name, messages in plain_cases().items()}
    for name, messages in tool_cases().items():
        found[name] = {"messages": messages, "tools": [WEATHER]}
    found["tool_round_without_tools"] = {"messages": ROUND}
    found["many_tools"] = {"messages": [system(), user()], "tools": [WEATHER, SCHEMA, EMPTY]}
    found["empty_tool"] = {"messages": [user()], "tools": [EMPTY]}
    found["bare_tool"] = {"messages": [user()], "tools": [WEATHER["function"]]}
    found["no_tools"] = {"messages": [user()], "tools": []}
    documents = [{"title": "T1", "text": "Body <1>"}, {"title": "T2", "text": "Body 2"}]
    found["documents"] = {"messages": [system(), user()], "documents": documents}
    for name, arguments in OPTIONS.items():
        found[name] = {"messages": [system()] + THOUGHTS, "arguments": arguments}
        found[name + "_tools"] = {"messages": [system()] + ROUND, "tools": [WEATHER], "arguments": arguments}
    for name, messages in {
        "continue": [user(), assistant("It is")], "continue_space": [user(), assistant("It is ")],
        "continue_parts": [user(), assistant(text_parts("It", " is"))], "continue_user": [user("Half a")],
        "continue_empty": [user(), {"role": "assistant", "content": None}],
    }.items():
        found[name] = {"messages": messages, "continue_final_message": True}
    return found


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def render(source, case, add_generation_prompt):
    arguments = {**SPECIAL, **case.get("arguments", {})}
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            conversations=[json.loads(json.dumps(case["messages"]))], tools=case.get("tools"),
            documents=case.get("documents"), chat_template=source,
            continue_final_message=case.get("continue_final_message", False),
            add_generation_prompt=add_generation_prompt, **arguments)
        return ["text", rendered[0]]
    except Exception as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return ["refuses", str(error)]
        return ["fails"]


def digest(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return ["digest", f"{value:016x}", len(text.encode())]


def write(file, rows, **head):
    lines = ",\n".join(" " + json.dumps(row, ensure_ascii=False) for row in rows)
    head = "".join(f'"{key}": {json.dumps(value)},\n' for key, value in head.items())
    file.write_text("{" + head + '"rows": [\n' + lines + "\n]}\n")


def main():
    os.environ["TZ"] = "UTC"
    time.tzset()
    chat_template_utils.datetime = FixedDate
    known = cases()
    rows = [[name, case] for name, case in known.items()]
    write(FOLDER / "cases.json", rows, now=int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp()),
          special_tokens=SPECIAL)
    sources = sorted(FOLDER.rglob("*.jinja"))
    for source in sources:
        rows = []
        for name, case in known.items():
            for prompt in (False, True):
                result = render(source.read_text(), case, prompt)
                if result[0] == "text" and not (prompt and name in IN_FULL):
                    result = digest(result[1])
                rows.append([name, prompt, result])
        write(source.with_suffix(".json"), rows)
    language = FOLDER / "language.json"
    if language.exists():
        old = json.loads(language.read_text())
        rows = []
        for template, _ in old["rows"]:
            case = {"messages": [user("Hi"), assistant("Yo")], "arguments": {"x": old["x"]}}
            rows.append([template, render(template, case, False)])
        write(language, rows, x=old["x"])
    print(len(sources), "templates,", 2 * len(known), "renderings each")


if __name__ == "__main__":
    main()
