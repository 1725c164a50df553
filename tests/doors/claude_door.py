#!/usr/bin/env python3
"""What Claude Code sends to /v1/messages, over several turns, and what it reads of the answers."""

import door

CACHED = {"cache_control": {"type": "ephemeral"}}
BASH = {"name": "Bash", "description": "Runs a command.", "input_schema": {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}},
    "required": ["command"], "additionalProperties": False}}
READ = {"name": "Read", "description": "Reads a file.", "eager_input_streaming": True, "input_schema": {
    "type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}}
ELSEWHERE = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
             {"type": "bash_20250124", "name": "bash"},
             {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
             {"type": "computer_20250124", "name": "computer", "display_width_px": 1,
              "display_height_px": 1},
             {"type": "code_execution_20250825", "name": "code_execution"},
             {"type": "memory_20250818", "name": "memory"}]
USER = {"role": "user", "content": [
    {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"},
    {"type": "text", "text": "Repair the test.", **CACHED}]}
HISTORY = [
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "I read the file first.", "signature": "EqQB"},
        {"type": "redacted_thinking", "data": "EmwK"},
        {"type": "text", "text": "I read it."},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a.py"},
         "caller": {"type": "direct"}},
        {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "toolu_3", "name": "Bash", "input": {"command": "true"}}]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
            {"type": "text", "text": "1\tprint(1)"}]},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file",
         "is_error": True},
        {"type": "tool_result", "tool_use_id": "toolu_3", **CACHED},
        {"type": "text", "text": "Go on."}]},
    {"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
         "input": {"query": "pytest"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "url": "https://pytest.org", "title": "pytest",
             "encrypted_content": "EpQC", "page_age": None}]},
        {"type": "text", "text": "Use pytest.", "citations": []}]},
    {"role": "user", "content": [
        {"type": "document", "title": "Notes", "source": {
            "type": "text", "media_type": "text/plain", "data": "The test is wrong."}},
        {"type": "search_result", "title": "S", "source": "https://s", "content": [
            {"type": "text", "text": "a result"}]},
        {"type": "text", "text": "Now?"}]},
]


def body(messages, **more):
    return {"model": "foretoken-7m", "max_tokens": 32000, "messages": messages,
            "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2"},
                       {"type": "text", "text": "You are Claude Code.", **CACHED}],
            "tools": [BASH, READ, *ELSEWHERE], "metadata": {"user_id": "user_1_account__session_2"},
            "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "temperature": 0, "stream": True, **more}


class ClaudeCode(door.DoorCase):
    flags = ("--max-model-len", "2048", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    headers = {"anthropic-version": "2023-06-01", "x-app": "cli",
               "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14"}

    def run_turn(self, messages, **more):
        """Sends a turn; returns the blocks of the answer, all events and the answer."""
        answer = self.post("/v1/messages?beta=true", body(messages, **more), headers=self.headers)
        events = answer.events
        self.assertEqual(events[0]["type"], "message_start")
        self.assertEqual(events[-1]["type"], "message_stop")
        blocks = [e["content_block"] for e in events if e["type"] == "content_block_start"]
        for event in events:
            if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
                blocks[event["index"]]["text"] += event["delta"]["text"]
        return blocks, events, answer

    def test_tools_that_cannot_run_are_left_out_and_told(self):
        _, events, answer = self.run_turn([USER], max_tokens=8)
        warnings = events[-1]["warnings"]
        self.assertEqual(len([one for one in warnings if "do not run here" in one]),
                         len(ELSEWHERE), warnings)
        for tool in ELSEWHERE:
            self.assertTrue(any(f"'{tool['type']}'" in one for one in warnings), warnings)
        self.assertIn("do not run here", answer.headers["X-Foretoken-Warnings"])

    def test_more_tokens_than_there_are(self):
        _, events, _ = self.run_turn([USER], stop_sequences=["."])
        self.assertIn(events[-2]["delta"]["stop_reason"], ("end_turn", "stop_sequence",
                                                           "max_tokens"))

    def test_what_the_bill_is_for_does_not_hide_the_prefix(self):
        def system(number):
            return [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2; cch={number};"},
                    {"type": "text", "text": "You are Claude Code. " * 20}]

        def usage(blocks):
            return self.post("/v1/messages", body([USER], system=blocks, stream=False, max_tokens=1,
                                                  tools=[BASH])).json["usage"]

        plain = usage(system(1)[1:])
        first, second = usage(system("8f3a1")), usage(system("00b7c"))
        for told in (first, second):
            self.assertEqual(told["input_tokens"] + told["cache_read_input_tokens"],
                             plain["input_tokens"] + plain["cache_read_input_tokens"])
        self.assertGreater(second["cache_read_input_tokens"], 64)

    def test_an_answer_goes_on_where_the_conversation_ends(self):
        def text(begun, **more):
            messages = [door.USER[0], {"role": "assistant", "content": begun}]
            asked = {"messages": messages, "max_tokens": 12, "temperature": 0, **more}
            counted = self.post("/v1/messages/count_tokens", {"messages": messages}).json
            answer = self.post("/v1/messages", asked).json
            told = answer["usage"]
            self.assertEqual(told["input_tokens"] + told["cache_read_input_tokens"],
                             counted["input_tokens"])
            return answer["content"][0]["text"]

        chat = {"messages": [door.USER[0], {"role": "assistant", "content": "The old dog"}],
                "max_tokens": 12, "temperature": 0, "continue_final_message": True}
        wanted = self.post("/v1/chat/completions", chat).json["choices"][0]["message"]["content"]
        self.assertEqual(text("The old dog"), wanted)
        self.assertEqual(text([{"type": "text", "text": "The old dog"}]), wanted)
        # A new answer, where there is nothing to go on with.
        self.assertEqual(text(""), text([{"type": "thinking", "thinking": "", "signature": "s"}]))

    def test_three_turns(self):
        messages = [USER]
        for _ in range(3):
            blocks, _, _ = self.run_turn(messages, max_tokens=16, tools=[BASH, READ])
            messages += [{"role": "assistant", "content": blocks}, USER]

    def test_a_history(self):
        self.run_turn([USER, *HISTORY], max_tokens=8)

    def test_a_forced_call_and_its_result(self):
        answer = self.post("/v1/messages", body([USER], stream=False, max_tokens=400, tool_choice={
            "type": "tool", "name": "Bash"}, thinking={"type": "disabled"})).json
        call = next(block for block in answer["content"] if block["type"] == "tool_use")
        self.run_turn([USER, {"role": "assistant", "content": answer["content"]},
                       {"role": "user", "content": [{"type": "tool_result", "content": "ok",
                                                     "tool_use_id": call["id"]}]}], max_tokens=8)

    def test_the_search_that_claude_code_asks_for(self):
        answer = self.post("/v1/messages", body(
            [USER], stream=False, max_tokens=8, tools=ELSEWHERE[:1],
            tool_choice={"type": "tool", "name": "web_search"})).json
        self.assertEqual(answer["type"], "message")

    def test_output_schemas(self):
        schema = {"type": "object", "properties": {"title": {"enum": ["a", "b"]}},
                  "required": ["title"], "additionalProperties": False}
        form = {"type": "json_schema", "schema": schema}
        for more in ({"output_config": {"format": form, "effort": "low"}}, {"output_format": form}):
            answer = self.post("/v1/messages", body([USER], stream=False, max_tokens=60, tools=[],
                                                    thinking={"type": "disabled"}, **more)).json
            self.assertIn('"title"', answer["content"][-1]["text"], answer)

    def test_budgets_services_and_edits_are_told(self):
        answer = self.post("/v1/messages", body(
            [USER], stream=False, max_tokens=4, tools=[], speed="fast", service_tier="auto",
            betas=["x"], container="c", mcp_servers=[{"type": "url", "url": "u", "name": "n"}],
            thinking={"type": "enabled", "budget_tokens": 31999},
            context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})).json
        self.assertEqual(len(answer["warnings"]), 4, answer["warnings"])

    def test_kinds_of_thinking(self):
        """anthropic 2.14 knows "between_tools"; another kind is no reason to refuse"""
        for kind, told in (("between_tools", 0), ("adaptive", 0), ("of_tomorrow", 1)):
            answer = self.post("/v1/messages", body([USER], stream=False, max_tokens=2, tools=[],
                                                    thinking={"type": kind})).json
            self.assertEqual(len(answer.get("warnings", [])), told, answer)

    def test_screenshots_end_no_conversation(self):
        """A picture in a result stands in every later turn, too."""
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                               "data": "AA" * 5000}}
        history = [USER, {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/a.png"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                                          "content": [picture]}]}]
        answer = self.post("/v1/messages", body(history, stream=False, max_tokens=2, tools=[])).json
        self.assertIn("'image'", answer["warnings"][0])
        self.assertLess(answer["usage"]["input_tokens"], 1000)
        items = [{"role": "user", "content": "Look."}, {
            "type": "function_call", "call_id": "c", "name": "view_image", "arguments": "{}"}, {
            "type": "function_call_output", "call_id": "c", "output": [
                {"type": "input_image", "image_url": "data:image/png;base64,AA"}]}]
        answer = self.post("/v1/responses", {"input": items, "max_output_tokens": 2}).json
        self.assertIn("'input_image'", answer["warnings"][0])
        called = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {
            "name": "f", "arguments": "{}"}}]}
        answer = self.post("/v1/chat/completions", {"max_tokens": 2, "messages": [
            *door.USER, called, {"role": "tool", "tool_call_id": "c", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]}).json
        self.assertIn("'image_url'", answer["warnings"][0])

    def test_what_is_no_text_is_refused_by_name(self):
        pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf",
                                              "data": "JVBERi0="}}
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                             "data": "AA"}}
        for block, name in ((pdf, "application/pdf"), (image, "'image'")):
            answer = self.post("/v1/messages", body([{"role": "user", "content": [block]}]),
                               status=400)
            self.assertEqual(answer.json["error"]["type"], "invalid_request_error")
            self.assertIn(name, answer.json["error"]["message"])


class History(door.DoorCase):
    """A template that shows all of the messages."""

    flags = ("--max-model-len", "2048", "--chat-template", "{{ messages | tojson }}")

    def test_members_of_the_wrong_type_are_named(self):
        source = {"type": "text", "data": "a"}
        result = {"type": "tool_result", "tool_use_id": "1", "content": "a"}
        wrong = {"title": {"type": "document", "source": source, "title": ["T"]},
                 "context": {"type": "document", "source": source, "context": 3},
                 "source": {"type": "search_result", "source": {}, "content": "a"},
                 "tool_name": {"type": "tool_reference", "tool_name": 1},
                 "data": {"type": "document", "source": {"type": "text", "data": 1}},
                 "text": {"type": "text", "text": None},
                 "is_error": {**result, "is_error": "perhaps"},
                 "tool_use_id": {**result, "tool_use_id": 5}}
        for name, block in wrong.items():
            with self.subTest(name):
                body = {"max_tokens": 4, "messages": [{"role": "user", "content": [block]}]}
                error = self.post("/v1/messages", body, 400).json["error"]
                self.assertIn(f"'{name}'", error["message"])
        block = {"type": "thinking", "thinking": 7}
        body = {"max_tokens": 4, "messages": [*door.USER, {"role": "assistant", "content": [block]}]}
        self.assertIn("'thinking'", self.post("/v1/messages", body, 400).json["error"]["message"])
        for title in (None, "T"):
            block = {"type": "document", "source": source, "title": title}
            self.post("/v1/messages", {"max_tokens": 4, "messages": [
                {"role": "user", "content": [block, {"type": "text", "text": "Hi"}]}]})

    def test_all_of_a_history_reaches_the_prompt(self):
        def tokens(messages):
            return self.post("/v1/messages/count_tokens?beta=true", {
                "messages": messages, "tools": [BASH]}).json["input_tokens"]
        whole = tokens([USER, *HISTORY])
        for at, message in enumerate(HISTORY):
            for block in message["content"]:
                if block["type"] in ("thinking", "redacted_thinking"):
                    continue
                less = {**message, "content": [one for one in message["content"] if one is not block]}
                with self.subTest(block["type"]):
                    self.assertLess(tokens([USER, *HISTORY[:at], less, *HISTORY[at + 1:]]), whole)


class ToldOnTheWay(door.DoorCase):
    """Claude Code 2.1 tells something after each result, and a template takes none of it there."""

    flags = ("--max-model-len", "2048", "--chat-template",
             "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
             "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
             "{{ m.role + ': ' + m.content + '\n' }}{% endfor %}")

    def usage(self, messages):
        return self.post("/v1/messages", {
            "messages": messages, "max_tokens": 1, "temperature": 0,
            "system": "You are Claude Code. " * 20}).json["usage"]

    def test_prefixes_are_found_again(self):
        """ollama 18431 and 17918, and vLLM's inline_system"""
        messages = [USER]
        lengths = []
        for number in range(3):
            messages += [
                {"role": "assistant", "content": [{"type": "tool_use", "id": f"t{number}",
                                                   "name": "Bash", "input": {"command": "ls"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}",
                                              "content": "a.py b.py " * 20}]},
                {"role": "system", "content": [
                    {"type": "text", "text": f"<total_tokens>{9000 - number} left</total_tokens>"}]}]
            told = self.usage(messages)
            if lengths:
                self.assertGreater(told["cache_read_input_tokens"], lengths[-1] - 64)
            lengths.append(told["input_tokens"] + told["cache_read_input_tokens"])
        self.assertEqual(lengths, sorted(lengths))

    def test_roles_beside_those_of_the_api(self):
        """vLLM's normalize_role; claude-code 94294: a message that only configures"""
        def length(*messages):
            told = self.usage(list(messages))
            return told["input_tokens"] + told["cache_read_input_tokens"]

        asked = length(USER, {"role": "user", "content": "Now?"})
        for role in ("ctx", "msg"):
            self.assertEqual(length(USER, {"role": role, "content": "Now?"}), asked)
        developer = {"role": "developer", "content": "Be brief."}
        system = {"role": "system", "content": "Be brief."}
        self.assertEqual(length(USER, developer), length(USER, system))
        self.assertEqual(length(USER, {"role": "system", "content": [], "output_config": {}}),
                         length(USER))
        self.post("/v1/messages", {"messages": [{"role": "nobody", "content": "Hi"}],
                                   "max_tokens": 1}, 400)


if __name__ == "__main__":
    door.main()
