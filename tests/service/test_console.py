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
def asked_place(tmp_path_factory):
    """A service of which two points were asked."""
    place = made_place(tmp_path_factory.mktemp("asked"))
    sb.LabelingSession.reopen(place.folder / "vault").ask_many(np.array([[1.0, 2.0], [-1.0, 0.5]]))
    with served(application(place.settings)) as url:
        yield url, place


def test_what_a_file_would_take_is_shown_before_it_is_asked(browser, asked_place, tmp_path):
    url, place = asked_place
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
