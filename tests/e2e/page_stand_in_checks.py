"""Checks of the chat page with answers that a test chooses (page_stand_in.py)."""

import time

from page_driver import SCHEMES, SIZES, Keys, Page, check
from page_stand_in import Answer, StandIn

MARKDOWN = """Here is a **quick** way, *really*:

## Steps

1. Read the file with `pathlib`, see [the docs](https://docs.python.org/3/).
2. Count the words & print 3 < 4.

```python
def count(path: str) -> int:
    return len(open(path).read().split())  # every <word>
```

| word | count |
|------|------:|
| fox  | 17    |

- [x] done

> A quotation with H<sub>2</sub>O.

That is all."""
CODE = 'def count(path: str) -> int:\n    return len(open(path).read().split())  # every <word>\n'

EVIL = """<img src=x onerror="window.broken=1"> and <script>window.broken=2</script>

<div onclick="window.broken=3" style="position:fixed">block</div>

[link](javascript:window.broken=4) [data](data:text/html,<script>window.broken=5</script>) <a href="javascript:window.broken=6">x</a>

![picture](https://evil.example/x.png?q=secret) [own](/abort_requests) <svg onload=window.broken=7> <iframe src=//evil.example>

```html
</code></pre><img src=x onerror="window.broken=8"><script>window.broken=9</script>
```

```"><img/src=x/onerror=window.broken=10>
code
```

`<img src=x onerror=window.broken=11>` <b onmouseover="window.broken=12">b</b>

<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.broken=13&gt;">"""


def check_markdown(page, server, shots):
    server.answers["How?"] = Answer(MARKDOWN, reasoning="The user wants **words** counted.",
                                    warnings=("uniqueItems is not enforced", "uniqueItems is not enforced"))
    page.start()
    page.ask("How?")
    answer = ".message.assistant .text "
    for selector in ("strong", "em", "h4", "ol > li", "li code", "table td", "blockquote sub", "pre code"):
        check(f"Markdown becomes <{selector}>", page.find(answer + selector) != [])
    check("code is highlighted", page.texts(answer + ".hljs-keyword")[:2] == ["def", "return"])
    check("code loses nothing", page.texts(answer + "pre code") == [CODE])
    link = page.find(answer + "a")[0]
    check("links open elsewhere and tell nothing", link.get_attribute("target") == "_blank"
          and "noopener" in link.get_attribute("rel") and "noreferrer" in link.get_attribute("rel"))
    check("drafts are tinted in text and code", page.find(answer + "p mark.draft") != []
          and page.find(answer + "pre mark.draft") != [])
    check("warnings are shown, each once", page.texts(".notes li") == ["uniqueItems is not enforced"])
    check("reasoning is folded", not page.visible(".thoughts") and page.find(".thoughts strong") != [])
    page.press(".message details summary")
    check("and unfolds by Enter", page.visible(".thoughts"))
    check("each paragraph is announced once", page.texts("#announcer p").count("That is all.") == 1
          and page.texts("#announcer p")[-1] == "The answer is complete.")
    markup = "return document.querySelector('.message.assistant .text').innerHTML"
    streamed = page.run(markup)
    page.open()
    check("a reload shows the same as the stream", page.run(markup) == streamed)
    page.press(".message details summary")
    for size in SIZES:
        for scheme in SCHEMES:
            page.set_view(size, scheme)
            faint = page.faint_texts()
            check(f"texts and code stand out ({size}, {scheme})", faint == [], faint)
            check(f"nothing is wider than the screen ({size})", page.overflow() <= 0)
            if shots:
                page.driver.save_screenshot(str(shots / f"markdown-{size}-{scheme}.png"))
    page.set_view()


def check_tints(page, server):
    text = "Plain words in a row, then `code here` and more & more of them."
    server.answers["Tint?"] = Answer(text)
    page.start()
    page.ask("Tint?")
    told = page.run("return JSON.parse(localStorage.getItem(Object.keys(localStorage).find("
                    "(key) => key.startsWith('foretoken-chat-')))).messages[1].runs")
    drafted, at = "", 0
    for number, length in enumerate(told):
        drafted += text[at:at + length] if number % 2 else ""
        at += length
    check("the kept runs cover the text", at == len(text))
    shown = "".join(page.texts(".message.assistant mark.draft"))
    bare = drafted.replace("`", "")
    check("exactly what came from drafts is tinted", "".join(shown.split()) == "".join(bare.split()), shown)
    page.press("[name=tint]", Keys.SPACE)
    ground = page.run("return getComputedStyle(document.querySelector('mark.draft')).backgroundColor")
    check("tints can be switched off", ground == "rgba(0, 0, 0, 0)", ground)


def check_evil(page, server):
    server.answers["Evil?"] = Answer(EVIL, reasoning=EVIL, warnings=("<img src=x onerror=window.broken=14>",))
    page.start()
    page.keys("Evil?", Keys.ENTER)
    page.until(lambda: page.num_answers() == 1 and page.idle())
    page.press(".message details summary")
    page.open()
    page.until(lambda: page.num_answers() == 1)
    time.sleep(0.5)
    check("no script of an answer runs", page.run("return window.broken ?? null") is None)
    bad = page.run("""return [...document.querySelectorAll("#log *")].filter((one) =>
        /^(IMG|SCRIPT|IFRAME|STYLE|OBJECT|svg|math|FORM|INPUT)$/.test(one.tagName) ||
        [...one.attributes].some(({name, value}) => name.startsWith("on") || name === "style" ||
          (name === "href" && !/^https?:/.test(value)))).map((one) => one.outerHTML)""")
    check("no markup of an answer is there", bad == [], bad)
    check("it is shown as it was written", 'onerror="window.broken=1"' in page.text(".message.assistant .text"))


def check_copy(page, server):
    server.answers["Copy?"] = Answer(MARKDOWN)
    page.start()
    page.ask("Copy?")
    read = "return navigator.clipboard.readText()"
    page.press(".code-bar .copy")
    page.until(lambda: page.text(".code-bar .copy") == "Copied")
    check("code is copied", page.run(read) == CODE)
    page.press(".message.assistant .foot .copy")
    page.until(lambda: page.text(".message.assistant .foot .copy") == "Copied")
    check("an answer is copied as it came", page.run(read) == MARKDOWN)
    page.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.until(lambda: page.text(".message.user .copy") == "Copy")
    page.press(".message.user .copy")
    page.until(lambda: page.text(".message.user .copy") != "Copy")
    check("copying works without the clipboard's interface", page.text(".message.user .copy") == "Copied")


def seconds_of(text):
    number, unit = text.split()
    return float(number) / (1000 if unit == "ms" else 1)


def check_times(page, server):
    server.answers["Slow?"] = Answer("Some words that come slowly, one after the other.", delay=0.9, pause=0.05)
    page.start()
    page.ask("Slow?")
    first = seconds_of(page.texts("#first-token")[0])
    check("the first token's time counts from the sending", 0.9 <= first < 30, first)
    mean = float(page.texts("#rate-mean")[0])
    tokens = int(page.texts("#answer-tokens")[0].split()[0])
    check("the mean rate is that of the answer", 0.5 < mean < 200, f"{tokens} tokens, {mean}/s")
    check("the figures stay with the answer", f"{tokens} tokens" in page.text(".figures"), page.text(".figures"))
    usage = [int(text.split()[0]) for text in page.texts("#positions .share")]
    check("acceptance by position is that of the steps", usage == sorted(usage, reverse=True) and usage[0] > 50, usage)


def check_bodies(page, server):
    page.start(temperature="0.5", top_p="0.9", max_tokens="50", seed="7", system="Be brief.", method="ngram",
               num_speculative_tokens="2")
    page.ask("One?")
    body = server.bodies[-1]
    wanted = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 50, "seed": 7,
              "speculative": {"method": "ngram", "num_speculative_tokens": 2}}
    check("settings are sent", all(body.get(name) == value for name, value in wanted.items()), body)
    check("the system text too", body["messages"][0] == {"role": "system", "content": "Be brief."})
    page.press("[name=method]", "Off")
    page.ask("Two?")
    check("a drafter can be off", server.bodies[-1]["speculative"] == {"enabled": False})
    check("answers are told of the turns before", [one["role"] for one in server.bodies[-1]["messages"]] ==
          ["system", "user", "assistant", "user"])
    page.start()
    page.ask("Three?")
    extra = set(server.bodies[-1]) & {"temperature", "top_p", "max_tokens", "seed", "speculative"}
    check("what is not set is left to the server", extra == set(), extra)


def check_edit(page, server):
    page.start()
    page.ask("First?")
    page.ask("Second?")
    answer = page.text(".message.assistant .text")
    page.press(".message.assistant .again")
    page.until(lambda: page.idle() and page.num_answers() == 2)
    check("regenerating asks the same again", [one["content"] for one in server.bodies[-1]["messages"]] ==
          [one["content"] for one in server.bodies[-2]["messages"]])
    check("and shows the new answer", page.text(".message.assistant .text") not in ("", answer))
    page.run("document.querySelector('.message.user .edit-question').id = 'edit-first'")
    page.press("#edit-first")
    check("editing starts in the text", page.has_focus(".edit textarea"))
    page.keys(Keys.ESCAPE)
    check("Escape ends it and changes nothing", page.has_focus("#edit-first") and page.num_answers() == 2)
    page.keys(Keys.ENTER)
    page.keys(" Changed.", Keys.ENTER)
    page.until(lambda: page.idle() and page.num_answers() == 1)
    check("an edited question goes on from there", page.texts(".message.user .text") == ["First? Changed."])
    check("the server is told of nothing after it", server.bodies[-1]["messages"] ==
          [{"role": "user", "content": "First? Changed."}])
    page.open()
    check("that is what is kept", page.texts(".message.user .text") == ["First? Changed."])


def check_failures(page, server):
    server.answers["Refuse"] = Answer("the server is full; try later", status=429)
    server.answers["Break"] = Answer("This answer ends in the mid", breaks_off=True)
    page.start()
    page.ask("Before?")
    page.keys("Refuse", Keys.ENTER)
    page.until(lambda: page.visible("#problem") and page.idle())
    check("a refusal is told", "try later" in page.text("#problem"))
    check("the question stays in the box", page.value("#prompt") == "Refuse" and len(page.find(".message")) == 2)
    page.keys(Keys.CONTROL, "a")
    page.keys(Keys.DELETE)
    page.ask("Break")
    check("what came of a broken answer stays", "in the mid" in page.text(".message.assistant .text"))
    check("and that it broke off is told", "Broke off" in page.text(".message.assistant .notes"))
    server.answers.pop("Break")
    page.press(".message.assistant .again")
    page.until(lambda: page.idle() and "Answer number" in page.text(".message.assistant .text"))
    check("it can be asked again", len(page.find(".message")) == 4 and not page.visible("#problem"))


def check_stops(page, server):
    server.answers["Long?"] = Answer("word " * 2000, pause=0.02)
    server.answers["Never?"] = Answer("late", delay=3)
    page.start()
    left = server.num_left
    page.keys("Long?", Keys.ENTER)
    page.until(lambda: "word" in page.text(".message.assistant .text"))
    check("Stop stands where Send was", page.visible("#stop") and not page.visible("#send"))
    page.press("#stop")
    page.until(page.idle)
    kept = page.text(".message.assistant .text")
    check("a stopped answer keeps what came", kept.count("word") > 0 and "Stopped" in page.text(".notes"))
    page.until(lambda: server.num_left == left + 1, 10)
    check("the server is told", True)
    page.tab_to("#prompt")
    page.keys("Never?", Keys.ENTER)
    page.until(lambda: page.visible("#stop"))
    page.keys(Keys.ESCAPE)
    page.until(page.idle)
    check("a question that was stopped before its answer is back in the box", page.value("#prompt") == "Never?")


def check_reload(page, server):
    server.answers["Long?"] = Answer("word " * 2000, pause=0.02)
    server.answers["Never?"] = Answer("late", delay=3)
    page.start()
    page.keys("Never?", Keys.ENTER)
    page.until(lambda: page.visible("#stop"))
    page.open()
    check("a reload keeps a question without an answer", page.texts(".message .text") == ["Never?"])
    server.answers["Never?"] = Answer("now")
    page.press(".message.user .again")
    page.until(lambda: page.num_answers() == 1 and page.idle())
    check("it can be asked again", page.text(".message.assistant .text").strip() == "now")
    check("and is told once", server.bodies[-1]["messages"] == [{"role": "user", "content": "Never?"}])
    page.keys("Long?", Keys.ENTER)
    page.until(lambda: "word" in page.text(".message.assistant .text"))
    page.open()
    check("a reload keeps what came of an answer", "word" in page.text(".message.assistant .text")
          and len(page.find(".message")) == 4)


def check_history(page, server):
    server.answers["Alpha?"] = Answer("one")
    page.start()
    for question in ("Alpha?", "Beta?", "Gamma?"):
        page.press("#new-chat")
        page.ask(question)
    titles = "#chat-list .title"
    check("conversations are listed, the last first", page.texts(titles) == ["Gamma?", "Beta?", "Alpha?"])
    page.press(titles)
    check("one is opened again", [text.strip() for text in page.texts(".message .text")] == ["Alpha?", "one"])
    page.press("#chat-list li:last-child .icon:nth-of-type(2)")
    page.keys("A new name", Keys.ENTER)
    check("it is renamed", page.texts(titles)[-1] == "A new name" and page.has_focus(titles))
    page.ask("More?")
    check("the name stays when it goes on", "A new name" in page.texts(titles)[0])
    page.press("#chat-list li:last-child .icon:nth-of-type(3)")
    check("one is deleted", page.texts(titles) == ["A new name", "Gamma?"])
    page.press("#undo-delete")
    check("and brought back", page.texts(titles) == ["A new name", "Gamma?", "Beta?"])
    page.open()
    check("all survive a reload", page.texts(titles) == ["A new name", "Gamma?", "Beta?"])
    page.set_view("phone")
    check("a narrow window hides the list", not page.visible("#chats"))
    page.press("#open-chats")
    check("a button opens it", page.visible("#chats") and page.has_focus("#new-chat"))
    page.keys(Keys.ESCAPE)
    check("Escape closes it", not page.visible("#chats") and page.has_focus("#open-chats"))
    page.set_view()


def check_bounds(page, server):
    page.start()
    page.run("""for (let i = 0; i < 120; ++i) {
      const chat = {id: `old-${i}`, title: `Old ${i}`, named: false, updated: i,
                    messages: [{role: "user", content: "x".repeat(i < 60 ? 60000 : 10)}]};
      localStorage.setItem(`foretoken-chat-${chat.id}`, JSON.stringify(chat)); }""")
    page.open()
    page.ask("New?")
    titles = page.texts("#chat-list .title")
    size = page.run("return JSON.stringify(localStorage).length")
    check("the history is bounded, the oldest go", len(titles) <= 100 and size < 4200000 and titles[0] == "New?"
          and "Old 119" in titles and "Old 0" not in titles, f"{len(titles)} conversations, {size} characters")
    page.run("localStorage.setItem('foretoken-chat-broken', '{')")
    page.open()
    check("a damaged entry is passed over", page.texts("#chat-list .title") == titles)


def check_stand_in(driver, page_url, shots):
    with StandIn(page_url) as server:
        page = Page(driver, server.url)
        check_markdown(page, server, shots)
        for part in (check_tints, check_evil, check_copy, check_times, check_bodies, check_edit, check_failures,
                     check_stops, check_reload, check_history, check_bounds):
            part(page, server)
        complaints = page.complaints()
        check("the console is silent", complaints == [], complaints)
    page.run("localStorage.clear()")
    page.driver.get(page_url)
