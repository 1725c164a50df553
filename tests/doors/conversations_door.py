#!/usr/bin/env python3
"""OpenAI's conversations, by its own packages: the client, and the sessions of its agents."""

import asyncio

import door

door.use_clients("openai", "agents")

import agents  # noqa: E402
import openai  # noqa: E402

HELLO = {"role": "user", "content": "Tell me a story about a cat."}
# The packages want answers that end by themselves.
LIMITS = {"max_output_tokens": 200, "temperature": 0, "extra_body": {"stop": [".", "?", "!"]}}


def texts(items):
    return [part.text for item in items if item.type == "message" for part in item.content]


class Conversations(door.DoorCase):
    flags = ("--max-model-len", "512")

    def setUp(self):
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def say(self, conversation, text, **more):
        return self.client.responses.create(model="foretoken-7m", input=text, **LIMITS,
                                            conversation=conversation, **more)

    def listed(self, conversation, **more):
        return list(self.client.conversations.items.list(conversation, order="asc", **more))

    def test_a_conversation_is_kept_changed_and_forgotten(self):
        talks = self.client.conversations
        made = talks.create(items=[HELLO], metadata={"topic": "cats"})
        self.assertEqual((made.object, made.metadata), ("conversation", {"topic": "cats"}))
        self.assertEqual(talks.retrieve(made.id), made)
        self.assertEqual(talks.update(made.id, metadata={"topic": "dogs"}).metadata, {"topic": "dogs"})
        self.assertTrue(talks.delete(made.id).deleted)
        for call in (lambda: talks.retrieve(made.id), lambda: self.say(made.id, "Hi")):
            with self.assertRaises(openai.NotFoundError) as raised:
                call()
            self.assertIn(made.id, str(raised.exception))

    def test_items_by_pages_and_one_by_one(self):
        items, talk = self.client.conversations.items, self.client.conversations.create().id
        names = [str(number) for number in range(7)]
        added = items.create(talk, items=[{"role": "user", "content": name} for name in names])
        self.assertEqual(texts(added.data), names)
        self.assertEqual(texts(self.listed(talk, limit=3)), names)
        one = added.data[3]
        self.assertEqual(texts([items.retrieve(one.id, conversation_id=talk)]), ["3"])
        self.assertEqual(items.delete(one.id, conversation_id=talk).id, talk)
        self.assertNotIn("3", texts(self.listed(talk)))

    def test_the_answer_is_that_of_a_client_that_keeps_the_items(self):
        talk = self.client.conversations.create(items=[{"role": "system", "content": "Be brief."}]).id
        first = self.say(talk, HELLO["content"])
        self.assertEqual(first.conversation.id, talk)
        history = [{"role": "system", "content": "Be brief."}, HELLO,
                   {"role": "assistant", "content": first.output_text},
                   {"role": "user", "content": "And then?"}]
        whole = self.client.responses.create(model="foretoken-7m", input=history, **LIMITS)
        second = self.say(talk, "And then?")
        self.assertEqual((second.output_text, second.usage.input_tokens),
                         (whole.output_text, whole.usage.input_tokens))
        self.assertEqual(texts(self.listed(talk)), [
            "Be brief.", HELLO["content"], first.output_text, "And then?", second.output_text])

    def test_streams_are_added_when_they_have_ended(self):
        talk = self.client.conversations.create().id
        with self.client.responses.stream(model="foretoken-7m", input="Hi", conversation=talk,
                                          **LIMITS) as stream:
            for _ in stream:
                pass
            text = stream.get_final_response().output_text
        self.assertEqual(texts(self.listed(talk)), ["Hi", text])

    def test_errors_name_the_field(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.conversations.create(items=[
                {"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}])
        self.assertIn("'items' item 1: parts of type 'input_image'", str(raised.exception))
        with self.assertRaises(openai.BadRequestError) as raised:
            self.say(self.client.conversations.create().id, "Hi", previous_response_id="resp_1")
        self.assertIn("give one of them", str(raised.exception))


class AgentSessions(door.DoorCase):
    """Sessions that the service keeps, and agents that name a conversation."""

    flags = ("--max-model-len", "2048", "--reasoning-parser", "none")

    def run_agent(self, work):
        agents.set_tracing_disabled(True)

        async def go():
            client = openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)
            model = agents.OpenAIResponsesModel("foretoken-7m", client)
            settings = agents.ModelSettings(max_tokens=200, temperature=0,
                                            extra_body=LIMITS["extra_body"])
            agent = agents.Agent("a", instructions="Be brief.", model=model, model_settings=settings)
            try:
                await work(client, agent)
            finally:
                await client.close()
        asyncio.run(go())

    def test_a_session_remembers(self):
        async def work(client, agent):
            session = agents.OpenAIConversationsSession(openai_client=client)
            first = await agents.Runner.run(agent, "Who are you?", session=session)
            await agents.Runner.run(agent, "And me?", session=session)
            items = await session.get_items()
            self.assertEqual([item["role"] for item in items],
                             ["user", "assistant", "user", "assistant"])
            self.assertEqual(items[1]["content"][0]["text"], first.final_output)
            self.assertEqual((await session.get_items(limit=1))[0], items[3])
            self.assertEqual((await session.pop_item())["id"], items[3]["id"])
            self.assertEqual(len(await session.get_items()), 3)
            talk = session.session_id
            await session.clear_session()
            with self.assertRaises(openai.NotFoundError):
                await client.conversations.retrieve(talk)
        self.run_agent(work)

    def test_an_agent_names_a_conversation(self):
        async def work(client, agent):
            talk = (await client.conversations.create()).id
            for question in ("Who are you?", "And me?"):
                await agents.Runner.run(agent, question, conversation_id=talk)
            page = await client.conversations.items.list(talk)
            self.assertEqual(len(page.data), 4)
        self.run_agent(work)


if __name__ == "__main__":
    door.main()
