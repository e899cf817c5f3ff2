"""The page for people: what is served, and what a browser shows of it."""

import re
import shutil
import socket
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from served_places import QUERIES, made_place

import secretballot as sb
from secretballot.service.app import application

PAGE = Path(__file__).parents[2] / "src/secretballot/service/page"


def test_the_page_has_few_files_with_strict_policies(client):
    for address, kind in (
        ("/", "text/html"),
        ("/console.css", "text/css"),
        ("/console.js", "text/javascript"),
    ):
        found = client.get(address)
        assert found.status_code == 200
        assert found.headers["content-type"].startswith(kind)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert found.content == (PAGE / (address[1:] or "index.html")).read_bytes()
    # a report may bring its style, and nothing else: no right, no address, no other script
    frame = client.get("/report.html").headers["content-security-policy"]
    assert "default-src 'none'; script-src 'sha256-" in frame
    assert frame.count("unsafe") == frame.count("style-src 'unsafe-inline'") == 1
    assert frame.endswith("frame-ancestors 'self'; sandbox allow-scripts")
    assert client.request("HEAD", "/").status_code == 200
    assert client.get("/page/index.html").status_code == 404


def test_nothing_comes_from_elsewhere_and_no_text_becomes_markup():
    for path in PAGE.iterdir():
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`)]*", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a kind of element
    script = (PAGE / "console.js").read_text()
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert unsafe not in script
    assert "localStorage" not in script  # a key is forgotten with its tab


def test_a_certificate_is_verified_for_whoever_may_see_it(place, client):
    address = "/v1/datasets/registry/sessions/session"
    key = place.key()
    assert client.get(f"{address}/verification").status_code == 401
    before = client.get(f"{address}/verification", headers=key)
    assert before.status_code == 200
    client.post(f"{address}/questions", headers=key, json={"points": [[0.5, 0.5]]})
    found = client.get(f"{address}/verification", headers=key).json()
    assert found["ok"]
    assert {"digest", "price", "released"} <= {check["name"] for check in found["checks"]}
    released = next(one for one in found["checks"] if one["name"] == "released")
    assert released["detail"].startswith("1 of 1 queries answered")


@pytest.fixture  # of one test: as long as it is there, no other loop of events runs in this thread
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser is installed")
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        opened = playwright.chromium.launch(executable_path=program, args=flags)
        yield opened
        opened.close()


@contextmanager
def served(app):
    """Serve an application from a thread of this process, whose imports are there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class Console:
    """The page in a tab, with all that went wrong in it."""

    def __init__(self, browser, address, width=1280):
        self.context = browser.new_context(viewport={"width": width, "height": 900})
        self.page = self.context.new_page()
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", lambda request: self.wrong.append(request.url))
        self.page.goto(address)

    def sign_in(self, token):
        self.page.get_by_label("Your key").fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def said(self, text):
        self.page.get_by_text(text).first.wait_for(timeout=20_000)

    def close(self):
        assert not self.wrong
        self.context.close()


@pytest.fixture(scope="module")
def releasing(tmp_path_factory):
    """A service with a release that has a report."""
    place = made_place(tmp_path_factory.mktemp("releasing"))
    session = sb.LabelingSession.reopen(place.folder / "vault")
    points = np.array([[1.0, 2.0], [-1.0, 0.5]])
    session.ask_many(points)
    sb.write_release(place.folder / "first", session.released(points), without=["student"])
    sb.new_signing_key(place.folder / "own.pem")
    listed = 'releases = ["first"]\nsessions ='
    config = place.config.read_text().replace("sessions =", listed)
    place.config.write_text('signing_key = "own.pem"\n' + config)
    with served(application(place.settings)) as url:
        yield url, place


def test_what_a_file_would_take_is_shown_before_it_is_asked(browser, releasing, tmp_path):
    url, place = releasing
    (tmp_path / "points.csv").write_text("a,b\n1,2\n-1,0.5\n3,4\n")
    for width in (1280, 400):
        console = Console(browser, url, width)
        console.sign_in("sb_wrong")
        console.said("The service does not know this key")
        console.sign_in(place.token())
        console.said("A new question takes one of the ")
        console.page.get_by_label("CSV file").set_input_files(tmp_path / "points.csv")
        console.page.get_by_role("button", name="Preview").click()
        if width == 1280:
            console.said(f"3 rows: 2 answered before, 1 new question; {QUERIES - 2} left.")
            console.page.get_by_role("button", name="Ask 1 new question").click()
        else:
            console.said("3 rows: 3 answered before, 0 new questions")
            console.page.get_by_role("button", name="Show the answers").click()
        console.said(f"3 of 3 questions answered; {QUERIES - 3} left.")
        console.close()


HOSTILE = """<!doctype html><html><head><title>A report</title>
<style>body { background: url(/seen-by-style) } p { color: rgb(1, 2, 3) }</style>
<style>@import "/seen-by-import";</style>
<script>window.ran = "in the head"</script>
<meta http-equiv="refresh" content="0; url=/seen-by-refresh">
<link rel="stylesheet" href="/seen-by-link">
</head><body onload="window.ran = 'loaded'"><p onclick="window.ran = 'pressed'">Words</p>
<script>window.ran = "in the body"</script>
<img src="/seen-by-image" onerror="window.ran = 'broken'">
<svg onload="window.ran = 'drawn'"><script>window.ran = "in a picture"</script></svg>
<iframe src="/seen-by-frame"></iframe><object data="/seen-by-object"></object>
<a href="javascript:window.ran = 'by address'">Address</a>
<a href="/seen-by-top" target="_top">Top</a>
<form action="/seen-by-form"><button>Send</button></form>
</body></html>"""


def test_a_hostile_report_runs_nothing_loads_nothing_and_cannot_reach_the_key(browser, releasing):
    url, place = releasing
    console = Console(browser, url)
    page = console.page
    seen = []
    page.context.on("request", lambda request: seen.append(request.url))
    page.route(
        "**/releases/first/report.html", lambda route: route.fulfill(body=HOSTILE, status=200)
    )
    console.sign_in(place.token())
    page.get_by_role("button", name="Show the report of first").click()
    shown = page.frame_locator("iframe[title='Report of first']")
    words = shown.get_by_text("Words")
    words.click()
    assert words.evaluate("e => getComputedStyle(e).color") == "rgb(1, 2, 3)"
    for name in ("Address", "Top"):
        shown.get_by_text(name).click()
    shown.get_by_role("button", name="Send").click()
    page.wait_for_timeout(500)
    assert words.evaluate("() => window.ran") is None
    assert words.evaluate("() => self.origin") == "null"
    reached = """() => ["parent.document", "sessionStorage", "top.location.href"].map(
        (name) => { try { eval(name); return "reached"; } catch (error) { return error.name; } })"""
    assert words.evaluate(reached) == ["SecurityError"] * 3
    asked = "() => fetch('/v1/key').then(() => 'answered', (error) => error.name)"
    assert words.evaluate(asked) == "TypeError"
    # not even the server was asked: what was tried failed in the browser
    answered = [url for url in seen if "seen-by" in url and url not in console.wrong]
    assert not answered
    assert page.url.rstrip("/") == url
    # nobody but the console's own frame tells how tall it is
    page.evaluate("postMessage({ height: 9999 })")
    page.wait_for_timeout(100)
    assert page.locator("iframe").evaluate("e => e.clientHeight") < 9000
    console.wrong.clear()
    console.close()


def test_the_frame_of_reports_takes_none_from_another_address(browser, releasing):
    """Opened by itself it is as empty as it came, and no page of another address may frame it."""
    url, _ = releasing
    page = browser.new_page()
    page.goto(f"{url}/report.html")
    page.evaluate("postMessage('<p>Forged</p>', '*')")
    page.wait_for_timeout(200)
    assert page.locator("p").count() == 0
    framing = f"<iframe src='{url}/report.html'></iframe>"
    page.route("http://elsewhere.test/", lambda route: route.fulfill(body=framing))
    page.goto("http://elsewhere.test/")
    page.wait_for_timeout(200)
    assert page.frames[1].url != f"{url}/report.html"
    page.close()
