#!/usr/bin/env python3
"""Responses that are kept: what they answered, page by page, and the events of a background."""

import json
import threading
import time

import door


def texts(items):
    return [item["content"][0]["text"] for item in items if item["type"] == "message"]


class Items(door.DoorCase):
    flags = ("--max-model-len", "512")

    def create(self, **more):
        return self.post("/v1/responses", {"max_output_tokens": 3, "temperature": 0, **more}).json

    def items(self, response, query=""):
        return self.get(f"/v1/responses/{response['id']}/input_items{query}").json

    def test_a_text_is_a_message(self):
        page = self.items(self.create(input="Hello"))
        item, = page["data"]
        self.assertEqual((item["type"], item["role"]), ("message", "user"))
        self.assertEqual(item["content"], [{"type": "input_text", "text": "Hello"}])
        self.assertEqual((page["object"], page["first_id"], page["last_id"], page["has_more"]),
                         ("list", item["id"], item["id"], False))

    def test_pages(self):
        names = [str(number) for number in range(5)]
        response = self.create(input=[{"role": "user", "content": name} for name in names])
        self.assertEqual(texts(self.items(response)["data"]), names[::-1])
        self.assertEqual(texts(self.items(response, "?order=asc")["data"]), names)
        seen, after = [], ""
        while True:
            page = self.items(response, f"?order=asc&limit=2{after}")
            seen += texts(page["data"])
            if not page["has_more"]:
                break
            after = f"&after={page['last_id']}"
        self.assertEqual(seen, names)

    def test_a_conversation_has_all_of_its_items(self):
        first = self.create(input="One")
        second = self.create(input="Two", previous_response_id=first["id"])
        found = self.items(second, "?order=asc")["data"]
        self.assertEqual(texts(found), ["One", *texts(first["output"]), "Two"])
        self.assertEqual(len({item["id"] for item in found}), 3)

    def test_items_keep_their_ids_and_kinds(self):
        call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
        found = self.items(self.create(input=[call, result]), "?order=asc")["data"]
        self.assertEqual(found[0], call)
        self.assertEqual({**found[1], "id": None}, {**result, "id": None})

    def test_a_long_conversation_is_cut_where_it_is_wanted(self):
        """OpenAI's agents and LangChain send "auto": items are dropped from the beginning"""
        items = [{"role": role, "content": "word " * 60} for role in ("user", "assistant") * 6]
        items.append({"role": "user", "content": "Hello"})
        response = self.create(input=items, truncation="auto", instructions="Be kind.")
        self.assertEqual(response["truncation"], "auto")
        self.assertLess(response["usage"]["input_tokens"], 512)
        self.assertIn("left out", response["warnings"][0])
        self.assertEqual(len(self.items(response)["data"]), 13)
        self.post("/v1/responses", {"input": items}, 400)
        short = self.create(input="Hello", truncation="auto")
        self.assertNotIn("warnings", short)

    def test_what_is_wrong(self):
        response = self.create(input="Hello")
        for query in ("limit=0", "limit=101", "limit=x", "order=up", "after=none"):
            path = f"/v1/responses/{response['id']}/input_items?{query}"
            self.assertIn(query.split("=")[0], self.get(path, 400).json["error"]["message"])
        self.get("/v1/responses/resp_none/input_items", 404)
        self.get(f"/v1/responses/{response['id']}?stream=true", 400)


class Background(door.DoorCase):
    flags = ("--max-model-len", "512", "--spec-method", "ngram", "--spec-tokens", "3")
    body = {"input": "Tell me a story.", "background": True, "stream": True, "temperature": 0,
            "max_output_tokens": 200, "ignore_eos": True}

    def follow(self, response, after, status=200):
        return self.get(f"/v1/responses/{response}?stream=true&starting_after={after}", status)

    def test_events_come_again_from_any_number(self):
        events = self.post("/v1/responses", self.body).events
        self.assertEqual([e["sequence_number"] for e in events], list(range(len(events))))
        self.assertEqual(events[-1]["type"], "response.incomplete")
        number = events[0]["response"]["id"]
        self.assertEqual(self.get(f"/v1/responses/{number}?stream=true").events, events)
        for after in (0, 7, len(events) - 2, len(events) - 1, len(events) + 5):
            self.assertEqual(self.follow(number, after).events, events[after + 1:])
        self.follow(number, "x", 400)
        self.assertEqual(self.get(f"/v1/responses/{number}").json, events[-1]["response"])

    def test_a_client_that_goes_finds_the_rest(self):
        body = {**self.body, "request_id": "resumed", "max_output_tokens": 400}
        whole = {}
        first = threading.Thread(target=lambda: whole.update(
            events=self.post("/v1/responses", body).events))
        first.start()
        end = time.monotonic() + 300
        while self.send("GET", "/v1/responses/resp_resumed").status != 200:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        others = self.follow("resp_resumed", 3).events  # while it runs
        first.join()
        self.assertEqual(others, whole["events"][4:])

    def test_the_same_text_as_without(self):
        plain = self.post("/v1/responses", {**self.body, "background": False, "stream": False})
        events = self.post("/v1/responses", self.body).events
        self.assertEqual(texts(plain.json["output"]), texts(events[-1]["response"]["output"]))

    def test_one_that_is_cancelled_ends_its_stream(self):
        body = {**self.body, "request_id": "stopped", "max_output_tokens": 450}
        whole = {}
        first = threading.Thread(target=lambda: whole.update(
            events=self.post("/v1/responses", body).events))
        first.start()
        end = time.monotonic() + 300
        while self.send("GET", "/v1/responses/resp_stopped").status != 200:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.post("/v1/responses/resp_stopped/cancel", {})
        first.join()
        last = self.get("/v1/responses/resp_stopped").json
        self.assertEqual(last["status"], "cancelled", json.dumps(last)[:400])

    def test_those_that_were_not_kept(self):
        response = self.post("/v1/responses", {**self.body, "stream": False}).json
        self.assertIn("not kept", self.follow(response["id"], 0, 400).json["error"]["message"])


if __name__ == "__main__":
    door.main()
