"""Drives the chat page of a running server with headless Chromium, by keyboard only.

    page_suite.py --url http://127.0.0.1:8000 [--shots DIR]
    page_suite.py --program build/cpu-release/foretoken

The second form starts a server of its own. Needs selenium, chromium and chromedriver; ends with 77
(skipped) where one is missing. Prints a line for each check and ends with 1 at the first that fails.
With --shots it leaves screenshots: wide and phone, light and dark.
"""

import argparse
import json
import pathlib
import sys
import time

from server_process import Server

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("skipped: selenium is not installed")
    sys.exit(77)

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
SPECULATION = '{"method": "eagle3", "num_speculative_tokens": 3, "length_policy": "fixed"}'
SIZES = {"wide": (1200, 800), "phone": (390, 760)}


def make_driver():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = CHROMIUM
    service = Service(DRIVER)
    return webdriver.Chrome(options=options, service=service)


def check(what, holds, seen=""):
    print(f"{'ok' if holds else 'FAILED'}: {what}" + (f" ({seen})" if seen != "" else ""), flush=True)
    if not holds:
        sys.exit(1)


class Page:
    def __init__(self, driver, url):
        self.driver = driver
        self.url = url

    def open(self):
        self.driver.get(self.url)
        self.until(lambda: self.text("#model") not in ("connecting", ""))

    def until(self, condition, seconds=120):
        WebDriverWait(self.driver, seconds, poll_frequency=0.1).until(lambda _: condition())

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        found = self.find(selector)
        return found[-1].text if found else ""

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def focused(self):
        return self.driver.switch_to.active_element.get_attribute("id")

    # Presses Tab until `element_id` has the focus; False after a whole round.
    def tab_to(self, element_id):
        for _ in range(30):
            if self.focused() == element_id:
                return True
            self.keys(Keys.TAB)
        return False

    def idle(self):
        return self.find("#send")[0].is_displayed()

    def ask(self, question):
        answers = len(self.find(".message.assistant"))
        self.keys(question, Keys.ENTER)
        self.until(lambda: len(self.find(".message.assistant")) == answers + 1 and self.idle())
        return self.text(".message.assistant .text")

    # Console errors and everything that the content security policy refused.
    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]


def set_up_view(driver, size, scheme):
    width, height = SIZES[size]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})


def set_limit(page, tokens):
    page.driver.execute_script(
        "localStorage.setItem('foretoken-settings', arguments[0])",
        json.dumps({"max_tokens": str(tokens), "temperature": "0"}))


def check_chat(page):
    check("the prompt has the focus", page.focused() == "prompt")
    answer = page.ask("Tell me a story about a fox.")
    check("an answer streams in", len(answer) > 20, f"{len(answer)} characters")
    tinted = page.find(".message.assistant mark.draft")
    check("accepted drafts are tinted", len(tinted) > 0, f"{len(tinted)} runs")
    joined = page.driver.execute_script(
        "return document.querySelector('.message.assistant .text').textContent")
    check("tinting loses no text", joined.strip() == answer.strip())
    check("acceptance is shown", "%" in page.text("#acceptance-now"), page.text("#acceptance-now"))
    check("tokens a second are shown", page.text("#rate-now") not in ("", "–"), page.text("#rate-now"))
    points = page.find("#rate-plot .line")[0].get_attribute("points")
    check("the rate is plotted", points.count(",") > 1)
    check("the focus stays in the prompt", page.focused() == "prompt")


def check_settings(page):
    check("settings are reached by Tab", page.tab_to("open-settings"))
    page.keys(Keys.ENTER)
    check("Enter opens the dialog", page.find("#settings[open]") != [])
    page.driver.find_element(By.NAME, "speculate").send_keys(Keys.SPACE)
    page.keys(Keys.ESCAPE)
    page.until(lambda: page.find("#settings[open]") == [])
    check("Escape closes it", page.focused() == "open-settings")
    check("the prompt is reached by Tab", page.tab_to("prompt"))
    page.ask("Tell me about the moon.")
    last = page.find(".message.assistant")[-1]
    check("without speculation nothing is tinted", last.find_elements(By.CSS_SELECTOR, "mark") == [])


def check_stop(page):
    set_limit(page, 4000)
    page.open()
    page.keys("Count for a long time.", Keys.ENTER)
    page.until(lambda: page.text(".message.assistant .text") != "" or page.idle())
    page.keys(Keys.ESCAPE)
    page.until(page.idle)
    check("Escape stops an answer", True)


def check_error(page):
    page.driver.execute_script("sessionStorage.setItem('foretoken-api-key', 'x')")
    page.driver.execute_script(
        "localStorage.setItem('foretoken-settings', JSON.stringify({top_p: '7'}))")
    page.open()
    page.keys("Hello", Keys.ENTER)
    page.until(lambda: page.text("#problem") != "")
    check("the server's refusal is shown", "top_p" in page.text("#problem"), page.text("#problem"))


def check_width(page, size):
    overflow = page.driver.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(f"nothing is wider than the screen ({size})", overflow <= 0, overflow)


def run(page, shots):
    page.driver.get(page.url)
    set_limit(page, 96)
    for size in SIZES:
        for scheme in ("light", "dark"):
            set_up_view(page.driver, size, scheme)
            page.open()
            check_chat(page)
            check_width(page, size)
            if shots:
                page.driver.save_screenshot(str(shots / f"page-{size}-{scheme}.png"))
    check_settings(page)
    complaints = page.complaints()
    check("the console is silent", complaints == [], complaints)
    check_stop(page)
    check_error(page)


def drive(url, shots):
    driver = make_driver()
    try:
        started = time.monotonic()
        run(Page(driver, url), shots)
        print(f"all held, {time.monotonic() - started:.0f} s")
    finally:
        driver.quit()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--url")
    target.add_argument("--program", help="foretoken, to be started for this")
    parser.add_argument("--shots", type=pathlib.Path)
    arguments = parser.parse_args()
    for path in (CHROMIUM, DRIVER):
        if not pathlib.Path(path).exists():
            print(f"skipped: there is no {path}")
            sys.exit(77)
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    if arguments.url:
        return drive(arguments.url, arguments.shots)
    with Server(arguments.program, "--speculative-config", SPECULATION) as server:
        return drive(server.url, arguments.shots)


if __name__ == "__main__":
    main()
