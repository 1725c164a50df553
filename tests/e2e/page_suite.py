"""Drives the chat page of a running server with headless Chromium, by keyboard only.

    page_suite.py --url http://127.0.0.1:8000 [--shots DIR]
    page_suite.py --program build/cpu-release/foretoken [--shots DIR] [--environment build/e2e-venv]

The second form starts servers of its own: most checks talk to the program, those of Markdown and of
faults to a stand-in that hands out the program's page (page_stand_in.py). Needs selenium, chromium and
chromedriver; ends with 77 (skipped) where one is missing. Prints a line for each check and ends with 1 at
the first that fails. With --shots it leaves screenshots: wide and phone, light and dark.
"""

import argparse
import pathlib
import time

from page_driver import SCHEMES, SIZES, Keys, Page, check, make_driver
from page_stand_in_checks import check_stand_in
from server_process import Server

SPECULATION = '{"method": "eagle3", "num_speculative_tokens": 3, "length_policy": "fixed"}'
KEY = "open-sesame"


def letters(text):
    return "".join(text.split())


def share(text):
    return int(text.split()[0])


def check_chat(page):
    check("the prompt has the focus", page.has_focus("#prompt"))
    answer = page.ask("Tell me a story about a fox.")
    check("an answer streams in", len(answer) > 20, f"{len(answer)} characters")
    tinted = page.texts(".message.assistant mark.draft")
    check("accepted drafts are tinted", len(tinted) > 0, f"{len(tinted)} runs")
    sent = page.run("return JSON.parse(localStorage.getItem('foretoken-chat-' + "
                    "sessionStorage.getItem('foretoken-open-chat'))).messages.at(-1).content")
    check("rendering and tinting lose no text", letters(sent) == letters(answer))
    for name in ("acceptance-now", "rate-now", "rate-mean", "first-token", "acceptance-length", "context-used"):
        shown = page.texts(f"#{name}")[0]
        check(f"{name} is shown", any(c.isdigit() for c in shown), shown)
    positions = [share(text) for text in page.texts("#positions .share")]
    check("acceptance by position falls", len(positions) == 3 and positions == sorted(positions, reverse=True)
          and 0 < positions[0] <= 100, positions)
    points = page.find("#rate-plot .line")[0].get_attribute("points")
    check("the rate is plotted", points.count(",") > 1)
    check("the focus stays in the prompt", page.has_focus("#prompt"))


def check_views(page, shots):
    page.start(max_tokens="96", temperature="0")
    for size in SIZES:
        for scheme in SCHEMES:
            page.set_view(size, scheme)
            page.run("sessionStorage.clear()")
            page.open()
            check_chat(page)
            check(f"nothing is wider than the screen ({size})", page.overflow() <= 0)
            faint = page.faint_texts()
            check(f"texts stand out ({size}, {scheme})", faint == [], faint)
            if shots:
                page.driver.save_screenshot(str(shots / f"page-{size}-{scheme}.png"))
    page.set_view()


def check_drafting(page):
    page.start(max_tokens="64", temperature="0")
    question = "Tell me about the moon."
    with_drafts = page.ask(question)
    page.press("[name=num_speculative_tokens]", "1")
    page.keys(Keys.TAB)
    page.press("#new-chat")
    with_one = page.ask(question)
    positions = [share(text) for text in page.texts("#positions .share")]
    check("with K = 1 only the first position is accepted", positions[1:] == [0, 0], positions)
    accepted = share(page.text("#acceptance-now"))
    check("its share is the acceptance of all drafts", abs(accepted - positions[0]) < 5, accepted)
    page.press("[name=method]", "Off")
    page.press("#new-chat")
    without = page.ask(question)
    check("without a drafter nothing is tinted", page.find(".message.assistant mark") == [])
    check("the text is the same with 3, 1 and no drafts", with_drafts == with_one == without)
    page.open()
    check("the choice survives a reload", page.value("[name=method]") == "off")


def check_no_limit(page):
    page.start(temperature="0")
    answer = page.ask("Tell me a story about a cat.")
    check("without a limit of tokens an answer goes to its end", len(answer.split()) > 20, f"{len(answer)} characters")


def check_chats(page):
    page.start(max_tokens="24", temperature="0")
    first = page.ask("Hello there.")
    page.ask("And again.")
    page.open()
    check("a reload keeps the conversation", page.texts(".message.user .text") == ["Hello there.", "And again."])
    check("its answers and tints too", letters(page.texts(".message.assistant .text")[0]) == letters(first)
          and page.find(".message.assistant mark.draft") != [])
    page.press(".message.assistant .again")
    page.until(page.idle)
    check("an answer is made anew", page.num_answers() == 2 and page.text(".message.assistant .text") != "")


def check_settings(page):
    page.start(temperature="0")
    page.press("#open-settings")
    check("Enter opens the settings", page.find("#settings[open]") != [])
    page.press("[name=max_tokens]", "7")
    page.keys(Keys.ESCAPE)
    page.until(lambda: page.find("#settings[open]") == [])
    check("Escape closes them", page.has_focus("#open-settings"))
    page.ask("Tell me about the sun.")
    check("a limit of tokens is kept", page.texts("#answer-tokens")[0] == "7 tokens", page.text("#answer-tokens"))
    check("its end is told", "limit" in page.text(".message.assistant .notes"))


def check_stop(page):
    page.start(max_tokens="4000")
    page.keys("Count for a long time.", Keys.ENTER)
    page.until(lambda: page.text(".message.assistant .text").strip(" …") != "" or page.idle())
    page.keys(Keys.ESCAPE)
    page.until(page.idle)
    check("Escape stops an answer", page.text(".message.assistant .text") != "")


def check_refusal(page):
    page.start(top_p="7")
    page.keys("Hello", Keys.ENTER)
    page.until(lambda: page.visible("#problem"))
    check("the server's refusal is shown", "top_p" in page.text("#problem"), page.text("#problem p"))
    check("the question stays in the box", page.value("#prompt") == "Hello" and page.find(".message") == [])


def check_key(page):
    page.start(max_tokens="16")
    check("a key is asked for", page.visible("#key-form") and page.has_focus("#key"))
    page.press("#prompt", "Hi")
    page.keys(Keys.ENTER)
    page.until(page.idle)
    check("a question without a key stays in the box", page.value("#prompt") == "Hi" and page.visible("#key-form"))
    page.press("#key", "wrong")
    page.keys(Keys.ENTER)
    page.until(lambda: "does not take" in page.text("#problem"))
    page.run("document.querySelector('#key').value = ''")
    page.press("#key", KEY)
    page.keys(Keys.ENTER)
    page.until(lambda: not page.visible("#key-form") and page.has_focus("#prompt"))
    page.keys(Keys.ENTER)
    page.until(lambda: page.num_answers() == 1 and page.idle())
    check("with the key it is answered", page.text(".message.assistant .text") != "" and not page.visible("#problem"))
    page.open()
    check("the key lasts as long as the tab", not page.visible("#key-form"))
    kept = page.run("return JSON.stringify(localStorage)")
    check("the key is not kept longer", KEY not in kept)


def check_loading(page):
    page.start()
    loaded = page.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    foreign = [name for name in loaded if not name.startswith(page.url)]
    check("nothing is loaded from elsewhere", len(loaded) > 20 and foreign == [], foreign or len(loaded))
    page.open()
    sent = page.run("return performance.getEntriesByType('resource').filter((one) => one.name.includes('/page/') &&"
                    " one.encodedBodySize > 0 && one.transferSize >= one.encodedBodySize).map((one) => one.name)")
    check("a second load is told that its files are the same", sent == [], sent)


def check_program(driver, url, shots):
    page = Page(driver, url)
    check_views(page, shots)
    for part in (check_loading, check_drafting, check_no_limit, check_chats, check_settings, check_stop, check_refusal):
        part(page)
    complaints = page.complaints()
    check("the console is silent", complaints == [], complaints)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--url")
    target.add_argument("--program", help="foretoken, to be started for this")
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--environment", help="folder of a virtual environment that gets selenium")
    arguments = parser.parse_args()
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    driver = make_driver()
    try:
        if arguments.url:
            check_program(driver, arguments.url, arguments.shots)
        else:
            with Server(arguments.program, "--speculative-config", SPECULATION) as server:
                check_program(driver, server.url, arguments.shots)
                check_stand_in(driver, server.url, arguments.shots)
            with Server(arguments.program, "--api-key", KEY) as server:
                check_key(Page(driver, server.url))
    finally:
        driver.quit()
    print(f"all held, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
