"""The chat page in headless Chromium, used by keyboard only.

Importing it ends the program with 77 (skipped) where chromium, chromedriver or selenium is missing. The
last comes from the clients' environment where the program is called with --environment FOLDER.
"""

import pathlib
import sys

from client_environment import enter_environment

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
for needed in (CHROMIUM, DRIVER):
    if not pathlib.Path(needed).exists():
        print(f"skipped: there is no {needed}")
        sys.exit(77)
if "--environment" in sys.argv:
    enter_environment(sys.argv[sys.argv.index("--environment") + 1], ("selenium",))
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("skipped: selenium is not installed")
    sys.exit(77)

SIZES = {"wide": (1280, 800), "phone": (390, 760)}
SCHEMES = ("light", "dark")

# Texts on the page whose contrast with what is behind them is below WCAG's 4.5.
FAINT_TEXTS = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function over(color, ground) {
  canvas.fillStyle = ground; canvas.fillRect(0, 0, 1, 1);
  canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return `rgb(${r}, ${g}, ${b})`;
}
function groundOf(element) {
  if (!element) return "rgb(255, 255, 255)";
  return over(getComputedStyle(element).backgroundColor, groundOf(element.parentElement));
}
function light(color) {
  const parts = color.match(/[\\d.]+/g).slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
const faint = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
  if (element.closest(".hidden, template, script, :disabled")) continue;
  const ground = groundOf(element);
  const ink = over(getComputedStyle(element).color, ground);
  const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) faint.push(`${walker.currentNode.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
}
return [...new Set(faint)];
"""


def make_driver():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = CHROMIUM
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.execute_cdp_cmd("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    return driver


def check(what, holds, seen=""):
    print(f"{'ok' if holds else 'FAILED'}: {what}" + (f" ({seen})" if seen != "" else ""), flush=True)
    if not holds:
        sys.exit(1)


class Page:
    def __init__(self, driver, url):
        self.driver = driver
        self.url = url

    def open(self):
        """Loads the page and waits until it knows its model, or asks for a key."""
        self.driver.get(self.url)
        self.until(lambda: self.text("#model") not in ("connecting", "") or self.visible("#problem"))

    def start(self, **settings):
        """Opens the page with nothing kept but `settings`."""
        self.driver.get(self.url)
        self.run("localStorage.clear(); sessionStorage.clear();")
        self.settings(**settings)
        self.open()

    def settings(self, **settings):
        """What the settings form will hold at the next load."""
        self.run("localStorage.setItem('foretoken-settings', JSON.stringify(arguments[0]))", settings)

    def set_view(self, size="wide", scheme="light"):
        width, height = SIZES[size]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, condition, seconds=120):
        WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: condition())

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def visible(self, selector):
        return any(element.is_displayed() for element in self.find(selector))

    def text(self, selector):
        """What the last element of a selector shows, or "" without one."""
        return self.run("return [...document.querySelectorAll(arguments[0])].at(-1)?.innerText ?? ''", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)",
                        selector)

    def value(self, selector):
        return self.run("return document.querySelector(arguments[0]).value", selector)

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def has_focus(self, selector):
        return self.run("return document.activeElement === [...document.querySelectorAll(arguments[0])].at(-1)",
                        selector)

    def tab_to(self, selector):
        """Presses Tab until the last element of `selector` has the focus; False after a whole round."""
        for _ in range(150):
            if self.has_focus(selector):
                return True
            self.keys(Keys.TAB)
        return False

    def press(self, selector, key=Keys.ENTER):
        """Goes to the last element of `selector` by Tab and presses a key there."""
        check(f"{selector} is reached by Tab", self.tab_to(selector))
        self.keys(key)

    def idle(self):
        return self.visible("#send")

    def num_answers(self):
        return len(self.find(".message.assistant"))

    def ask(self, question):
        """Types a question, waits for the whole answer and returns what it shows."""
        answers = self.num_answers()
        if not self.has_focus("#prompt"):
            self.tab_to("#prompt")
        self.keys(question, Keys.ENTER)
        self.until(lambda: self.num_answers() == answers + 1 and self.idle())
        return self.text(".message.assistant .text")

    def complaints(self):
        """Errors of the console and what the content security policy refused; not a server's refusals,
        which browsers put there too."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING") and "Failed to load resource" not in entry["message"]]

    def faint_texts(self):
        return self.run(FAINT_TEXTS)

    def overflow(self):
        """By how many pixels the page is wider than its window."""
        return self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
