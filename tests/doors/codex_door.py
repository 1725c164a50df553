#!/usr/bin/env python3
"""What Codex sends to /v1/responses, over several turns, and what it reads of the answers."""

import door

SHELL = {"type": "function", "name": "shell", "description": "Runs a command.", "strict": False,
         "parameters": {"type": "object", "properties": {
             "command": {"type": "array", "items": {"type": "string"}},
             "workdir": {"type": "string"}}, "required": ["command"], "additionalProperties": False}}
PLAN = {"type": "function", "name": "update_plan", "description": "Updates the plan.",
        "strict": False, "parameters": {"type": "object", "properties": {
            "plan": {"type": "array", "items": {"type": "object"}}}, "required": ["plan"]}}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files.",
         "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}
FILES = {"type": "namespace", "name": "mcp__files", "description": "", "tools": [
    {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]}
ELSEWHERE = [
    {"type": "web_search", "external_web_access": False},
    {"type": "local_shell"},
    {"type": "image_generation", "output_format": "png"},
    {"type": "tool_search", "execution": "client"},
]
USER = {"type": "message", "role": "user", "content": [
    {"type": "input_text", "text": "List the files and repair the test."}]}
SETUP = [
    {"type": "message", "role": "developer", "content": [
        {"type": "input_text", "text": "<permissions>read-only</permissions>"}]},
    {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "<environment_context>\n  <cwd>/tmp</cwd>\n"
                                       "</environment_context>"}]}]
# What the history of a later turn holds.
HISTORY = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "**Looking**"}],
     "content": None, "encrypted_content": "gAAAAABo"},
    {"type": "message", "role": "assistant", "phase": "commentary",
     "content": [{"type": "output_text", "text": "I look at the files."}]},
    {"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}",
     "call_id": "call_1"},
    {"type": "function_call_output", "call_id": "call_1",
     "output": "{\"output\":\"a_test.py\\n\",\"metadata\":{\"exit_code\":0}}"},
    {"type": "custom_tool_call", "status": "completed", "call_id": "call_2",
     "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": [
        {"type": "input_text", "text": "Done"}]},
    {"type": "local_shell_call", "call_id": "call_3", "status": "completed", "action": {
        "type": "exec", "command": ["pytest"], "timeout_ms": None, "working_directory": None,
        "env": None, "user": None}},
    {"type": "function_call_output", "call_id": "call_3", "output": "1 passed"},
    {"type": "web_search_call", "status": "completed",
     "action": {"type": "search", "query": "pytest"}},
    {"type": "compaction", "encrypted_content": "gAAAAABp"},
]


def body(items, **more):
    """A body as ResponsesApiRequest of codex-rs has it."""
    return {"model": "foretoken-7m", "instructions": "You are a coding agent.", "input": items,
            "tools": [SHELL, PLAN, PATCH, FILES, *ELSEWHERE], "tool_choice": "auto", "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"}, "store": False, "stream": True,
            "include": ["reasoning.encrypted_content"], "service_tier": "priority",
            "prompt_cache_key": "0199c0de", "text": {"verbosity": "low"},
            "client_metadata": {"x-codex-installation-id": "1"}, "temperature": 0,
            "max_output_tokens": 24, **more}


class Codex(door.DoorCase):
    flags = ("--max-model-len", "2048", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")

    def run_turn(self, items, **more):
        """Sends a turn; returns its items as Codex keeps them, and the last event."""
        answer = self.post("/v1/responses?beta=true", body(items, **more),
                           headers={"OpenAI-Beta": "responses=experimental", "originator": "codex"})
        events = answer.events
        last = events[-1]
        self.assertIn(last["type"], ("response.completed", "response.incomplete"), last)
        usage = last["response"]["usage"]
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            self.assertGreater(usage[name], 0, usage)
        self.assertIn("cached_tokens", usage["input_tokens_details"])
        kept = [e["item"] for e in events if e["type"] == "response.output_item.done"]
        return kept, last, answer

    def test_no_websocket_and_no_forgotten_response(self):
        """codex 43353: 426 is its sign to go on without; oh-my-pi 925: all is sent again"""
        answer = self.send("GET", "/v1/responses", headers={
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        self.assertEqual(answer.status, 426)
        error = self.post("/v1/responses", body([], previous_response_id="resp_forgotten"),
                          status=404).json["error"]
        self.assertEqual(error["code"], "previous_response_not_found")

    def test_tools_that_cannot_run_are_left_out_and_told(self):
        _, last, answer = self.run_turn([*SETUP, USER])
        warnings = last["response"]["warnings"]
        for tool in ELSEWHERE:
            self.assertTrue(any(f"'{tool['type']}'" in one for one in warnings), (tool, warnings))
        self.assertIn("do not run here", answer.headers["X-Foretoken-Warnings"])
        self.assertFalse([one for one in warnings if "unknown" in one], warnings)

    def test_three_turns(self):
        items = [*SETUP, USER]
        for turn in range(3):
            kept, _, _ = self.run_turn(items)
            self.assertTrue(kept)
            items += kept + [{"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": f"Go on, {turn}."}]}]

    def test_items_of_a_history(self):
        _, last, _ = self.run_turn([*SETUP, USER, *HISTORY, USER])
        warnings = last["response"]["warnings"]
        for name in ("web_search_call", "compaction"):
            self.assertTrue(any(f"'{name}'" in one for one in warnings), warnings)

    def test_a_forced_call_and_its_result(self):
        kept, _, _ = self.run_turn([*SETUP, USER], max_output_tokens=400, tool_choice={
            "type": "function", "name": "shell"})
        call = next(item for item in kept if item["type"] == "function_call")
        self.run_turn([*SETUP, USER, *kept, {"type": "function_call_output",
                                             "call_id": call["call_id"], "output": "ok"}])

    def test_tools_with_a_text_and_of_a_namespace(self):
        """vllm 56285, gLLM 267, sglang 23766: called as the client knows them"""
        for choice, kind, given in (({"type": "custom", "name": "apply_patch"}, "custom_tool_call",
                                     "input"),
                                    ({"type": "function", "name": "read", "namespace": "mcp__files"},
                                     "function_call", "arguments")):
            kept, last, _ = self.run_turn([*SETUP, USER], max_output_tokens=400, tool_choice=choice)
            call = next(item for item in kept if item["type"] == kind)
            self.assertEqual(call["name"], choice["name"])
            self.assertEqual(call.get("namespace"), choice.get("namespace"))
            self.assertIsInstance(call[given], str)
            self.assertEqual(last["response"]["output"], kept)
            self.run_turn([*SETUP, USER, *kept, {"type": kind + "_output", "output": "ok",
                                                 "call_id": call["call_id"]}])

    def test_models_are_codexs_own(self):
        """codex 22205 and 35758: entries of another form are an error at every start"""
        listed = self.get("/v1/models?client_version=0.145.0").json
        self.assertEqual(listed["models"], [])
        self.assertEqual(len(listed["data"]), 1)

    def test_an_output_schema(self):
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
                  "additionalProperties": False}
        kept, _, _ = self.run_turn([USER], tools=[], max_output_tokens=60, text={
            "verbosity": "low", "format": {"type": "json_schema", "strict": True, "schema": schema,
                                           "name": "codex_output_schema"}})
        self.assertIn('"ok"', kept[-1]["content"][0]["text"])

    def test_images_are_refused_by_name(self):
        answer = self.post("/v1/responses", body([{"type": "message", "role": "user", "content": [
            {"type": "input_image", "image_url": "data:image/png;base64,AA"}]}]), status=400)
        self.assertIn("'input_image'", answer.json["error"]["message"])

    def test_other_fields_of_the_api(self):
        answer = self.post("/v1/responses", {
            "input": "Hi", "max_output_tokens": 3, "truncation": "auto", "max_tool_calls": 3,
            "metadata": {"a": "b"}, "user": "u", "stream_options": {"include_obfuscation": False},
            "tools": [{"type": "web_search_preview"}, {"type": "code_interpreter"},
                      {"type": "file_search"}, {"type": "computer_use_preview"},
                      {"type": "mcp", "server_label": "x"}, {"type": "shell"},
                      {"type": "apply_patch"}],
            "tool_choice": {"type": "web_search_preview"}}).json
        self.assertEqual(len(answer["warnings"]), 9, answer["warnings"])
        # vLLM's: what is told to workers has no effect, a history that would be lost is refused.
        body = {"input": "Hi", "max_output_tokens": 3}
        answer = self.post("/v1/responses", {**body, "session_id": "a", "vllm_xargs": {"a": 1}})
        self.assertEqual(len(answer.json["warnings"]), 1)
        self.assertIn("has no effect here", answer.json["warnings"][0])
        self.post("/v1/responses", {**body, "previous_input_messages": [{"role": "user"}]}, 400)


class History(door.DoorCase):
    """A template that shows all of the messages."""

    flags = ("--max-model-len", "2048", "--chat-template", "{{ messages | tojson }}")

    def tokens(self, items):
        return self.post("/v1/responses", body(items, stream=False, tools=[], max_output_tokens=1)
                         ).json["usage"]["input_tokens"]

    def test_all_of_a_history_reaches_the_prompt(self):
        whole = self.tokens([USER, *HISTORY])
        for at, item in enumerate(HISTORY):
            if item["type"] in ("reasoning", "web_search_call", "compaction"):
                continue  # what is encrypted or has no result
            with self.subTest(item["type"]):
                self.assertLess(self.tokens([USER, *HISTORY[:at], *HISTORY[at + 1:]]), whole)

    def test_items_may_be_named_instead_of_sent(self):
        """As the AI SDK of Vercel does where responses are kept."""
        answer = self.post("/v1/responses", body([USER], stream=False, max_output_tokens=400,
                                                 tool_choice={"type": "function", "name": "shell"},
                                                 store=True)).json
        kept = answer["output"]
        call = next(item for item in kept if item["type"] == "function_call")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
        named = [{"type": "item_reference", "id": item["id"]} for item in kept]
        self.assertEqual(self.tokens([USER, *named, result]), self.tokens([USER, *kept, result]))
        self.assertGreater(self.tokens([USER, *named, result]), self.tokens([USER, result]))
        lost = self.post("/v1/responses", body([USER, {"type": "item_reference", "id": "msg_gone"}],
                                               stream=False, tools=[], max_output_tokens=1)).json
        self.assertIn("'msg_gone'", lost["warnings"][0])

    def test_reasoning_that_can_be_read_does_too(self):
        reasoning = {"type": "reasoning", "summary": [], "content": [
            {"type": "reasoning_text", "text": "The test is wrong since the name has changed."}]}
        self.assertGreater(self.tokens([USER, reasoning, *HISTORY]), self.tokens([USER, *HISTORY]))


if __name__ == "__main__":
    door.main()
