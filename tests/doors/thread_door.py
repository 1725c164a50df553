#!/usr/bin/env python3
"""Anthropic's threads, by which the tool runners of its packages (from 2.x) send new messages alone."""

import door

MESSAGES = "/v1/messages"
TOOL = {"name": "f", "description": "d", "input_schema": {
    "type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}}
BEGIN = {"system": "Be brief.", "tools": [TOOL], "max_tokens": 60, "temperature": 0}


def read(usage):
    return usage["input_tokens"] + usage["cache_read_input_tokens"]


def result(call):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"],
                                         "content": "42"}]}


class Threads(door.DoorCase):
    def begin(self, **more):
        return self.post(MESSAGES, {**BEGIN, "messages": door.USER, "thread": {"type": "create"},
                                    "tool_choice": {"type": "any"}, **more}).json

    def go_on(self, previous, messages, status=200, **more):
        return self.post(MESSAGES, {"max_tokens": 12, "temperature": 0, "messages": messages, "thread": {
            "type": "continue", "previous_message_id": previous}, **more}, status)

    def test_a_conversation_goes_on(self):
        first = self.begin()
        self.assertNotIn("thread", str(first.get("warnings")))
        new = [result(first["content"][-1])]
        second = self.go_on(first["id"], new).json
        history = [*door.USER, {"role": "assistant", "content": first["content"]}, *new]
        whole = self.post(MESSAGES, {**BEGIN, "max_tokens": 12, "messages": history}).json
        self.assertEqual(second["content"], whole["content"])
        self.assertEqual(read(second["usage"]), read(whole["usage"]))
        third = self.go_on(second["id"], door.USER).json
        history += [{"role": "assistant", "content": second["content"]}, *door.USER]
        whole = self.post(MESSAGES, {**BEGIN, "max_tokens": 12, "messages": history}).json
        self.assertEqual([third["content"], read(third["usage"])],
                         [whole["content"], read(whole["usage"])])

    def test_streams_are_kept_too(self):
        events = self.post(MESSAGES, {**BEGIN, "max_tokens": 8, "messages": door.USER, "stream": True,
                                      "thread": {"type": "create"}}).events
        message = events[0]["message"]
        more = self.go_on(message["id"], door.USER, stream=True).events
        self.assertGreater(read(more[0]["message"]["usage"]), read(message["usage"]) + 8)

    def test_a_lost_one_is_told_in_words_that_clients_know(self):
        error = self.go_on("msg_none", door.USER, 404).json["error"]
        self.assertEqual(error["details"]["error_code"], "thread_not_found")
        alone = self.post(MESSAGES, {**BEGIN, "messages": door.USER}).json
        self.go_on(alone["id"], door.USER, 404)

    def test_a_summary_is_not_mistaken_for_an_answer(self):
        body = {**BEGIN, "messages": door.USER, "compaction": {"type": "enabled"}}
        self.assertIn("summed up", self.post(MESSAGES, body, 400).json["error"]["message"])
        self.post(MESSAGES + "/count_tokens", body)

    def test_what_is_wrong(self):
        first = self.begin()
        for more in ({"system": "Other."}, {"tools": [TOOL]}):
            self.go_on(first["id"], door.USER, 400, **more)
        for thread in ({"type": "go"}, {"type": "continue"}, "create"):
            self.post(MESSAGES, {**BEGIN, "messages": door.USER, "thread": thread}, 400)


if __name__ == "__main__":
    door.main()
