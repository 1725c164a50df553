#!/usr/bin/env python3
"""What people reported of other servers in 2026, as the smallest request each.

The names behind the cases are the projects' public reports, as in reports_door.py.
"""

import json

import door

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


def forced(text):
    """Makes the model write `text`."""
    return {"temperature": 0, "structured_outputs": {"choice": [text]}}


class Bodies(door.DoorCase):
    def chat(self, status=200, **more):
        return self.post(CHAT, {"messages": door.USER, "max_tokens": 8, **more}, status).json

    def test_parts_without_a_type_or_a_list(self):
        """Clients of Gemini, and one part alone"""
        wanted = self.chat()["usage"]["prompt_tokens"]
        text = door.USER[0]["content"]
        for content in ([{"text": text}], {"text": text}, {"type": "text", "text": text}, [text]):
            answer = self.chat(messages=[{"role": "user", "content": content}])
            self.assertEqual(answer["usage"]["prompt_tokens"], wanted)
        for content in ([{"text": text}], {"type": "input_text", "text": text}):
            self.post(RESPONSES, {"input": [{"role": "user", "content": content}],
                                  "max_output_tokens": 2})

    def test_log_probabilities_that_are_switched_off(self):
        """False was the number 0 of alternatives in completions"""
        body = {"prompt": "Once", "max_tokens": 2}
        for fields in ({"logprobs": False}, {"prompt_logprobs": False}, {"logprobs": None}):
            choice = self.post("/v1/completions", {**body, **fields}).json["choices"][0]
            self.assertIsNone(choice["logprobs"])
            self.assertIsNone(choice.get("prompt_logprobs"))
        for given in (0, True):
            choice = self.post("/v1/completions", {**body, "logprobs": given}).json["choices"][0]
            self.assertEqual(len(choice["logprobs"]["tokens"]), 2)

    def test_unknown_includes(self):
        """They were passed over without a word"""
        body = {"input": "Hi", "max_output_tokens": 2}
        told = self.post(RESPONSES, {**body, "include": ["message.logprobs"]}).json["warnings"]
        self.assertIn("'message.logprobs'", told[0])
        for known in (["reasoning.encrypted_content"], ["web_search_call.action.sources"], []):
            self.assertNotIn("warnings", self.post(RESPONSES, {**body, "include": known}).json)

    def test_extra_bodies_that_are_sent_as_they_are(self):
        """cherry-studio 12450, TensorRT-LLM 9709, dbx 3411"""
        answer = self.chat(extra_body={**forced("yes"), "top_k": 5}, temperature=1)
        self.assertEqual(answer["choices"][0]["message"]["content"], "yes")
        self.assertNotIn("warnings", answer)
        usage = self.post(RESPONSES, {"input": "Hi", "extra_body": {"max_output_tokens": 2}}).json
        self.assertEqual(usage["usage"]["output_tokens"], 2)

    def test_effort_as_an_object(self):
        """litellm 18543"""
        for effort in ({"effort": "low", "summary": "auto"}, {"effort": None}, "low"):
            self.assertNotIn("warnings", self.chat(reasoning_effort=effort))

    def test_a_response_that_goes_on_without_a_word(self):
        """ollama 18419, ik_llama.cpp 1964"""
        first = self.post(RESPONSES, {"input": "Hi", "max_output_tokens": 3}).json
        for more in ({}, {"input": []}, {"input": None}):
            answer = self.post(RESPONSES, {"previous_response_id": first["id"],
                                           "max_output_tokens": 2, **more}).json
            self.assertGreater(answer["usage"]["input_tokens"], first["usage"]["input_tokens"])
        self.post(RESPONSES, {"input": []}, 400)


    def test_how_json_is_written_beside_response_format(self):
        """vLLM lays response_format over structured_outputs, which may hold options alone"""
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        tight = self.chat(response_format=form, max_tokens=40, temperature=0,
                          structured_outputs={"disable_any_whitespace": True})
        self.assertRegex(tight["choices"][0]["message"]["content"], r'^{"a":[12]}$')
        for options in ({}, {"whitespace_pattern": " ?"}, {"disable_fallback": True, "regex": None}):
            self.chat(response_format=form, structured_outputs=options)
        for other in ({"regex": "a"}, {"json_object": True}, {"choice": ["a"]}):
            self.chat(400, response_format=form, structured_outputs=other)
        self.chat(400, structured_outputs={"disable_any_whitespace": True})

    def test_forms_as_other_servers_name_them(self):
        """What clients of TGI, Together, Fireworks and LMDeploy send"""
        for form, text in (({"type": "regex", "pattern": "[7]{3}"}, "777"),
                           ({"type": "regex", "value": "[7]{3}"}, "777"),
                           ({"type": "grammar", "grammar": 'root ::= "yes"'}, "yes"),
                           ({"type": "json", "value": {"const": 7}}, "7")):
            answer = self.chat(response_format=form)
            self.assertEqual(answer["choices"][0]["message"]["content"], text)
        self.chat(400, response_format={"type": "regex"})

    def test_documents_that_no_template_shows(self):
        """They were passed over without a word"""
        documents = [{"title": "Cats", "text": "Cats sleep for most of the day."}]
        self.assertIn("1 of 1 'documents'", self.chat(documents=documents)["warnings"][0])
        self.assertNotIn("warnings", self.chat(documents=[]))

    def test_thoughts_in_parts(self):
        """openwiki 231, and Mistral's lists"""
        for part in ({"type": "reasoning", "reasoning": "Hm."}, {"type": "redacted_thinking"},
                     {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}):
            self.chat(messages=[*door.USER, {"role": "assistant", "content": [
                part, {"type": "text", "text": "Yes."}]}, *door.USER])

    def test_what_a_service_made_ends_no_conversation(self):
        answer = self.post("/v1/messages", {"max_tokens": 2, "messages": [*door.USER, {
            "role": "assistant", "content": [{"type": "connector_text", "connector_text": "x"},
                                             {"type": "text", "text": "Yes."}]}, *door.USER]}).json
        self.assertIn("'connector_text'", answer["warnings"][0])

    def test_messages_of_chats_in_responses(self):
        """vllm 33089: roles and calls as chats have them"""
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        history = [*door.USER, {"role": "assistant", "content": None, "tool_calls": [call]},
                   {"role": "tool", "tool_call_id": "c", "content": "42"}]
        told = self.post(RESPONSES, {"input": history, "max_output_tokens": 2}).json["usage"]
        usual = self.post(RESPONSES, {"max_output_tokens": 2, "input": [
            *door.USER, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "42"}]}).json["usage"]
        self.assertEqual(told["input_tokens"], usual["input_tokens"])

    def test_results_of_tools_as_they_came(self):
        """vllm 25001: objects, and what else a tool returns"""
        def counted(result):
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            chat = [*door.USER, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c", "content": result}]
            return self.chat(messages=chat)["usage"]["prompt_tokens"]

        for result in (18, 1.5, True, [1, 2], [{"city": "Paris"}], {"temp": 18}):
            text = json.dumps(result, separators=(",", ":"))
            self.assertEqual(counted(result), counted(text), result)
        for output in (18, True):
            self.post(RESPONSES, {"max_output_tokens": 2, "input": [*door.USER, {
                "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {
                    "type": "function_call_output", "call_id": "c", "output": output}]})

    def test_several_texts_make_one_prompt_in_every_api(self):
        texts = ["One.", "Two."]
        chat = self.chat(messages=[{"role": "user", "content": [
            {"type": "text", "text": text} for text in texts]}])["usage"]["prompt_tokens"]
        answer = self.post(RESPONSES, {"max_output_tokens": 2, "input": [{"role": "user", "content": [
            {"type": "input_text", "text": text} for text in texts]}]}).json
        counted = self.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": [
            {"type": "text", "text": text} for text in texts]}]}).json
        self.assertEqual([answer["usage"]["input_tokens"], counted["input_tokens"]], [chat, chat])

    def test_the_side_that_is_cut(self):
        """vllm 43260"""
        for more in ({"truncation_side": "left", "truncate_prompt_tokens": 4},
                     {"truncation_side": "right", "truncate_prompt_tokens": 4},
                     {"truncation_side": None}):
            self.assertNotIn("warnings", self.chat(**more))
        self.chat(400, truncation_side="middle", truncate_prompt_tokens=4)


class ChangesOnTheWay(door.DoorCase):
    """What clients of November 2026 send: inline-tools-2026-09-15 and configuration updates"""

    def told(self, messages, status=200):
        body = {"max_tokens": 2, "messages": messages, "tools": [
            {"name": name, "input_schema": {"type": "object"}} for name in ("read", "write")]}
        return self.post("/v1/messages", body, status).json

    def test_tools_come_and_go(self):
        def told(*changes):
            usage = self.told([{"role": "user", "content": [
                {"type": "text", "text": "Hi"}, *({"type": kind, "tool": tool}
                                                  for kind, tool in changes)]}])["usage"]
            return usage["input_tokens"] + usage["cache_read_input_tokens"]

        write = {"type": "tool_reference", "name": "write"}
        more = {"type": "tool_definition", "definition": {
            "name": "list", "input_schema": {"type": "object"}}}
        both = told()
        self.assertLess(told(("tool_removal", write)), both)
        self.assertEqual(told(("tool_removal", write), ("tool_addition", write)), both)
        self.assertGreater(told(("tool_addition", more)), both)
        self.told([{"role": "user", "content": [{"type": "tool_removal"}]}], 400)

    def test_what_the_system_says_later(self):
        said = {"role": "system", "content": "Speak of the sea.", "clear_at": "next_user_message"}
        counts = [self.post("/v1/messages/count_tokens", {"messages": messages}).json["input_tokens"]
                  for messages in ([*door.USER, said], [*door.USER, said, *door.USER],
                                   [*door.USER, *door.USER])]
        self.assertEqual(counts[1], counts[2])
        self.assertGreater(counts[0], counts[2] / 2)

    def test_items_that_are_settings(self):
        form = {"type": "json_schema", "name": "n", "schema": {"const": 7}}
        answer = self.post(RESPONSES, {"temperature": 0, "max_output_tokens": 8, "input": [
            *door.USER, {"type": "configuration_update", "text": {"format": form}}]}).json
        self.assertEqual(answer["output"][0]["content"][0]["text"], "7")
        first = self.post(RESPONSES, {"max_output_tokens": 60, "temperature": 0, "input": [
            *door.USER, {"type": "additional_tools", "role": "developer", "tools": [
                {"type": "function", "name": "look", "parameters": {"type": "object"}}]}],
                                      "tool_choice": "required"}).json
        self.assertEqual(first["output"][0]["name"], "look")
        again = self.post(RESPONSES, {"previous_response_id": first["id"], "max_output_tokens": 60,
                                      "temperature": 0, "tool_choice": "required", "input": [
            {"type": "function_call_output", "call_id": first["output"][0]["call_id"],
             "output": "42"}]}).json
        self.assertEqual(again["output"][0]["name"], "look")


class Blocks(door.DoorCase):
    """What Cursor sends to OpenAI's address: CLIProxyAPI 1165 and 3805, vibeproxy 411, dario 203,
    anthropic-max-router 2."""

    tool = {"name": "read", "description": "Reads.", "input_schema": {
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
    history = [*door.USER, {"role": "assistant", "content": [{"type": "text", "text": "So."}, call]},
               {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                                             "content": [{"type": "text", "text": "42"}]}]}]

    def test_histories(self):
        usual = [*door.USER, {"role": "assistant", "content": [{"type": "text", "text": "So."}],
                              "tool_calls": [{"id": "toolu_1", "type": "function", "function": {
                                  "name": "read", "arguments": "{\"path\":\"a\"}"}}]},
                 {"role": "tool", "tool_call_id": "toolu_1", "content": "42"}]
        counts = [self.post(CHAT, {"messages": one, "max_tokens": 1}).json["usage"]["prompt_tokens"]
                  for one in (self.history, usual, door.USER)]
        self.assertEqual(counts[0], counts[1])
        self.assertGreater(counts[0], counts[2])

    def test_tools_and_choices(self):
        for choice in ({"type": "tool", "name": "read"}, {"type": "any"}, {"name": "read"}):
            body = {"messages": self.history, "tools": [self.tool], "tool_choice": choice,
                    "max_tokens": 60, "temperature": 0, "parallel_tool_calls": False}
            message = self.post(CHAT, body).json["choices"][0]["message"]
            self.assertEqual(message["tool_calls"][0]["function"]["name"], "read", choice)
        for choice in ({"type": "auto"}, {"type": "auto", "disable_parallel_tool_use": True},
                       {"type": "none"}):
            self.post(CHAT, {"messages": door.USER, "tools": [self.tool], "tool_choice": choice,
                             "max_tokens": 1})


class Thinking(door.DoorCase):
    """A template that tells what it was told."""

    flags = ("--chat-template", "{{ 'Think of it for long.' if enable_thinking else 'No.' }}",
             "--default-chat-template-kwargs", '{"enable_thinking": false}')

    def told(self, path=CHAT, **more):
        """The length of the prompt, which differs between True and False."""
        used = self.post(path, {"messages": door.USER, "max_tokens": 1, **more}).json["usage"]
        return used.get("prompt_tokens", 0) + used.get("input_tokens", 0) + used.get(
            "cache_read_input_tokens", 0)

    def test_efforts_turn_thinking_on(self):
        """vllm 43401 and 43395; the server's own variables: vllm's --default-chat-template-kwargs"""
        on, off = (self.told(chat_template_kwargs={"enable_thinking": value})
                   for value in (True, False))
        self.assertNotEqual(on, off)
        self.assertEqual(self.told(), off)
        self.assertEqual(self.told(reasoning_effort="high"), on)
        self.assertEqual(self.told(reasoning_effort="none"), off)
        self.assertEqual(self.told("/v1/messages"), off)
        self.assertEqual(self.told("/v1/messages", thinking={"type": "enabled"}), on)
        self.assertEqual(self.told(reasoning_effort="high",
                                   chat_template_kwargs={"enable_thinking": False}), off)


class Addresses(door.DoorCase):
    def test_clients_of_ollama_ask_for_its_version(self):
        """llama 15167 and 16733, vscode 271431 and 286414, vmlx 147"""
        version = self.get("/api/version").json["version"]
        self.assertGreaterEqual([int(part) for part in version.split(".")], [0, 6, 4])

    def test_openais_form_where_the_address_lacks_v1(self):
        """zed 54804"""
        body = {"model": " ", "prompt": "Once", "max_tokens": 3, "temperature": 0}
        answer = self.post("/completions", body).json
        self.assertIn("id", answer)
        self.assertEqual(answer["object"], "text_completion")
        ours = self.post("/completion", {"prompt": "Once", "n_predict": 3, "temperature": 0}).json
        self.assertEqual(answer["choices"][0]["text"], ours["content"])
        events = self.post("/completions", {**body, "stream": True}).text
        self.assertTrue(events.endswith("data: [DONE]\n\n"))
        both = self.post("/completions", {**body, "n_predict": 3}).json
        self.assertEqual(both["content"], ours["content"])

    def test_probabilities_by_both_names(self):
        """llama 27196"""
        body = {"prompt": "Once", "n_predict": 3, "temperature": 0}
        told = [self.post("/completion", {**body, name: 3}).json["completion_probabilities"]
                for name in ("n_probs", "logprobs")]
        self.assertEqual(told[0], told[1])
        self.assertEqual(len(told[0]), 3)

    def test_addresses_that_end_as_paths_begin(self):
        """AIClient2API 336, open-webui 12117: an address with /v1 for a client that adds it"""
        self.get("/v1/v1/models")
        self.post("/v1/v1/messages", {"messages": door.USER, "max_tokens": 1})
        self.post("/v1//v1/chat/completions", {"messages": door.USER, "max_tokens": 1})
        self.get("/v1/v1/nothing", 404)
        # Addresses of other servers, of proxies, and those that are a whole endpoint.
        for path, hint in (("/api/v1/chat/completions", "--root-path /api"),
                           ("/v1/chat/completions/chat/completions", "leave /v1/chat/completions")):
            self.assertIn(hint, self.post(path, {}, 404).json["error"]["message"])

    def test_what_is_served_elsewhere_is_told(self):
        """open-webui's and LiteLLM's speech, OpenAI's batches, vLLM's classes and renderers"""
        for path, word in (("/v1/audio/transcriptions", "only texts"), ("/v1/batches", "run-batch"),
                           ("/v1/images/generations", "only texts"), ("/classify", "/v1/score"),
                           ("/v1/moderations", "choice"),
                           ("/embed_sparse", "/v1/embeddings"), ("/v2/models/x/infer", "/v1"),
                           ("/v1beta/models/gemini-2.5:streamGenerateContent?alt=sse", "/v1"),
                           ("/openai/deployments/gpt-4o/images/generations?api-version=1", "/v1"),
                           ("/v2/chat", "/v1/chat"), ("/cohere/v2/chat", "use /v1/chat"),
                           ("/v1/decisions", "choice"), ("/api/v1/chat", "/v1"), ("/api/v1/generate", "/v1")):
            self.assertIn(word, self.post(path, {}, 404).json["error"]["message"])
        # Behind a prefix, and whatever is done with what is not kept here.
        for path in ("/foo/v1/batches", "/v1/batches/batch_1/cancel", "/v1/files"):
            self.assertIn("run-batch", self.post(path, {}, 404).json["error"]["message"])
        for path in ("/v1/batches?limit=2", "/v1/files/file-1/content", "/v1/messages/batches"):
            self.assertIn("run-batch", self.get(path, 404).json["error"]["message"])
        # lm-eval asks for it where its tokenizer is remote.
        self.assertIn("--enable-tokenizer-info-endpoint",
                      self.get("/tokenizer_info", 404).json["error"]["message"])

    def test_paths_of_sglang(self):
        """What its routers and charts call; vmlx 99: lm-eval's remote tokenizer"""
        self.get("/health_generate")
        tokens = self.post("/v1/tokenize", {"prompt": "a cat"}).json["tokens"]
        self.assertEqual(self.post("/v1/detokenize", {"tokens": tokens}).json["prompt"], "a cat")
        self.post("/flush_cache", None)


if __name__ == "__main__":
    door.main()
