"""The page of a cluster in a browser: what it shows, what its buttons do, how it looks.

Needs Chromium (Debian's package ``chromium``); without it the walk is skipped, in CI it fails.
``FAKEKAFKA_SCREENSHOTS`` names a directory that keeps what the browser shows.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.control.server import ControlServer
from fakekafka.tests.support.chromium import CHROMIUM, chromium
from fakekafka.tests.support.pages import HARD_TO_READ, WIDER_THAN_THE_SCREEN

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("page"), pytest.mark.timeout(120)]

LAPTOP_PX, PHONE_PX = 1280, 390
GROUP = "billing <img src=x onerror=alert(1)>"
WITHOUT_A_NAME = """() => [...document.querySelectorAll('button, input, select, textarea')]
    .filter(element => !element.getAttribute('aria-label'))
    .map(element => element.outerHTML)"""
CLICK_AS_SOON_AS_THERE = """([label, clientX, clientY]) => new Promise(done => {
    const look = () => {
        const button = document.querySelector(`[aria-label='${label}']`);
        if (!button) return requestAnimationFrame(look);
        done(button.dispatchEvent(new MouseEvent('click', { detail: 2, clientX, clientY })));
    };
    look();
})"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[ControlServer]:
    server = ControlServer(cluster)
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    if CHROMIUM is None:
        pytest.skip("the page is looked at in Chromium: apt-get install chromium")
    with chromium(tmp_path_factory.mktemp("chromium")) as context:
        yield context


@pytest.fixture
def page(browser: Any, server: ControlServer) -> Generator[Any]:
    """The loaded page; at the end it must have no errors or warnings in its console and no requests
    to other sites."""
    found: list[str] = []
    page = browser.new_page()
    page.set_viewport_size({"width": LAPTOP_PX, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.on(
        "console",
        lambda said: found.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith((server.url, "data:")) else found.append(asked),
    )
    page.goto(server.url)
    page.wait_for_selector("[data-broker='3']")
    yield page
    page.close()
    assert found == []


def shot(page: Any, name: str) -> None:
    """Save a picture of the whole page if ``FAKEKAFKA_SCREENSHOTS`` is set."""
    folder = os.environ.get("FAKEKAFKA_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def press(page: Any, label: str) -> None:
    page.mouse.move(0, 0)  # the page ignores a click at the same place without a move
    page.get_by_role("button", name=label, exact=True).click()


def leader_is(page: Any, partition: str, leader: int) -> None:
    """Wait until the page shows a leader."""
    cell = f"[data-partition='{partition}'] td.leader"
    page.wait_for_function(
        "([cell, leader]) => document.querySelector(cell)?.innerText === leader",
        arg=[cell, str(leader)],
    )


def shows(page: Any, selector: str, text: str) -> None:
    """Wait until an element shows a text."""
    page.locator(selector).filter(has_text=text).first.wait_for()


def test_a_broker_is_killed_and_started_by_its_buttons(page: Any, cluster: Cluster) -> None:
    """Killing and starting a broker by its buttons shows the new leader, the smaller ISR, the
    events, and the full ISR again."""
    leader_is(page, "orders-0", 1)
    shows(page, "#health", "all in sync")
    press(page, "Kill broker 1")
    leader_is(page, "orders-0", 2)
    assert not cluster.broker(1).is_alive
    shows(page, "[data-broker='1']", "not running")
    shows(page, "#health", "under-replicated")
    shows(page, "#events [data-type='election']", "orders-0: broker 2 leads")
    shows(page, "#events [data-type='broker']", "broker 1: not running")
    shows(page, "#events [data-type='action']", "POST /brokers/1/kill")
    shot(page, "killed")
    assert page.evaluate("document.activeElement.ariaLabel") == "Start broker 1"
    page.keyboard.press("Enter")
    shows(page, "#health", "all in sync")
    press(page, "Elect the preferred leader of orders-0")
    leader_is(page, "orders-0", 1)
    press(page, "Shut down broker 2")
    leader_is(page, "orders-1", 3)
    press(page, "Start broker 2")
    shows(page, "#health", "all in sync")
    press(page, "Elect the preferred leader of every partition")
    leader_is(page, "orders-1", 2)


def test_a_second_click_at_the_same_place_does_not_press_the_next_button(page: Any) -> None:
    """The second click of a double click on Kill does not press Start, which ignores clicks for a
    moment or until the pointer moves."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.post_data else None)
    page.mouse.move(0, 0)
    box = page.get_by_role("button", name="Kill broker 1", exact=True).bounding_box()
    where = (box["x"] + 5, box["y"] + 5)
    page.mouse.dblclick(*where)
    page.evaluate(CLICK_AS_SOON_AS_THERE, ["Start broker 1", *where])
    shows(page, "[data-broker='1']", "not running")
    assert [url.rpartition("/brokers/")[2] for url in asked] == ["1/kill"]
    page.mouse.click(where[0] + 10, where[1])  # the pointer moves there
    shows(page, "#health", "all in sync")
    assert asked[-1].endswith("/brokers/1/start")


def ended(page: Any, button: str, fault: str) -> None:
    """Press the button of a fault, and wait until the fault is gone."""
    entry = page.locator("#faults li", has_text=fault)
    page.mouse.move(0, 0)
    entry.get_by_role("button", name=button).last.click()
    entry.wait_for(state="detached")


def test_faults_are_shown_and_ended(page: Any, cluster: Cluster) -> None:
    """Each fault (isolated, paused, held back, injected) has an entry and a button that ends it."""
    press(page, "Isolate broker 3")
    shows(page, "[data-broker='3']", "isolated")
    shows(page, "#faults", "broker-3 is isolated")
    assert cluster.network.rules.cuts
    press(page, "Heal the network, broker 3 included")
    shows(page, "#faults", "None. Links, brokers and answers are as they should be.")
    assert not cluster.network.rules.cuts
    press(page, "Pause broker 2")
    shows(page, "#faults", "broker 2 is paused")
    ended(page, "Resume", "broker 2 is paused")
    page.evaluate(
        """async () => {
            const post = (path, body) => fetch(path, {method: 'POST', body: JSON.stringify(body)});
            await post('/network/holds', {messages: ['DescribeAclsRequest'], target: 2});
            await post('/injections', {api: 'ListGroups', error: 'NOT_COORDINATOR', times: 3,
                                       client_id: '<b>x'});
        }"""
    )
    shows(page, "#faults", "DescribeAclsRequest to 2 held back; 0 now")
    shows(page, "#faults", "into ListGroups: NOT_COORDINATOR, client_id <b>x; 0 applied")
    shot(page, "faults")
    ended(page, "End", "DescribeAclsRequest to 2 held back")
    ended(page, "Cancel", "into ListGroups")
    shows(page, "#faults", "None. Links, brokers and answers are as they should be.")
    assert cluster.injections == []
    shows(page, "#health", "all in sync")


def test_slow_narrow_and_lossy_links_are_shown_and_ended(page: Any, cluster: Cluster) -> None:
    """Slow, narrow and lossy links are shown and ended, both for all links and for one."""
    network = cluster.network
    network.latency(2)
    network.latency(9, source=1, target=2)
    network.bandwidth(50)
    network.bandwidth(20, 2, 3)
    network.drop(0.001)
    network.drop(0.002, 3, 1)
    for button, fault in (
        ("Heal", "messages from broker-1 to broker-2 take 9 ms"),
        ("Heal", "the link from broker-2 to broker-3 sends 20 MB/s"),
        ("Heal", "0.002 of the messages from broker-3 to broker-1 are lost"),
        ("No delay", "every message takes 2 ms"),
        ("No limit", "every link sends 50 MB/s"),
        ("Lose none", "0.001 of all messages are lost"),
    ):
        shows(page, "#faults li", fault)
        ended(page, button, fault)
    shows(page, "#faults", "None. Links, brokers and answers are as they should be.")
    rules = network.rules
    assert (rules.loss, rules.link_losses, rules.link_latencies) == (0, {}, {})
    assert (rules.latency, rules.bandwidth_mb_per_s) == ("0 ms", None)


HOSTILE_VALUE = (
    """<script>document.title = 'owned'</script><img src=x onerror="document.title = 'owned'">"""
)


def rows(page: Any) -> list[int]:
    """Return the offsets of the shown records, in the order of the page."""
    offsets: list[int] = page.evaluate(
        "[...document.querySelectorAll('#records tr[data-offset]')].map(r => +r.dataset.offset)"
    )
    return offsets


def shows_rows(page: Any, first: int, last: int) -> None:
    """Wait until the records of a range of offsets are shown, newest first."""
    page.wait_for_function(
        """([first, last]) => {
            const shown = [...document.querySelectorAll('#records tr[data-offset]')]
                .map(row => +row.dataset.offset);
            return shown[0] === last && shown.at(-1) === first;
        }""",
        arg=[first, last],
    )
    assert rows(page) == [*range(last, first - 1, -1)]


def test_records_are_shown_page_by_page(page: Any, cluster: Cluster) -> None:
    """Records are shown newest first: a page older, the oldest page, by offset, by time; new ones
    appear by themselves."""
    cluster.create_topic("pages", replication_factor=1)
    for start in range(0, 230, 10):
        cluster.produce("pages", [f"record {n}" for n in range(start, start + 10)])
    shows(page, "#topics [data-topic='pages']", "LEO 230")
    press(page, "Look at the records of pages-0")
    shows_rows(page, 180, 229)
    press(page, "Older records")
    shows_rows(page, 130, 179)
    press(page, "The oldest records")
    shows_rows(page, 0, 49)
    press(page, "Newer records")
    shows_rows(page, 50, 99)
    page.get_by_label("Offset", exact=True).fill("117")
    page.get_by_label("Offset", exact=True).press("Enter")
    shows_rows(page, 117, 166)
    page.get_by_label("Time", exact=True).fill("2001-01-01T00:00:00")
    press(page, "Go to the time")
    shows_rows(page, 0, 49)
    page.get_by_label("Time", exact=True).fill("2201-01-01T00:00:00")
    press(page, "Go to the time")
    shows(page, "#records", "There are no records here.")
    press(page, "The newest records")
    shows_rows(page, 180, 229)
    cluster.produce("pages", "one more")
    shows_rows(page, 181, 230)
    press(page, "Close the records")
    page.wait_for_function("document.getElementById('records').hidden")


def test_values_are_text_json_and_hex_and_never_a_program(page: Any, cluster: Cluster) -> None:
    """Values are shown as text, JSON and hex but never executed; a large one is loaded in full on
    request only."""
    cluster.create_topic("values", replication_factor=1)
    cluster.produce("values", HOSTILE_VALUE, key=HOSTILE_VALUE, headers=[("<b>h", b"<i>v")])
    cluster.produce("values", '{"b":{"c":[1,2]}}')
    cluster.produce("values", bytes(range(200, 256)))
    cluster.produce("values", None, key="gone")
    cluster.produce("values", "begin" + "x" * 20_000 + "end")
    shows(page, "#topics [data-topic='values']", "LEO 5")
    press(page, "Look at the records of values-0")
    cell = "#records tr[data-offset='{}'] td.value"
    shows(page, cell.format(0), HOSTILE_VALUE)
    shows(page, cell.format(0), "<b>h: <i>v")
    shows(page, cell.format(1), '{"b":{"c":[1,2]}}')
    shows(page, cell.format(2), "c8 c9 ca")
    shows(page, cell.format(3), "null")
    press(page, "Show keys and values as JSON")
    shows(page, cell.format(1), '"c": [')
    press(page, "Show keys and values as hex")
    shows(page, cell.format(1), "7b 22 62 22")
    press(page, "Show keys and values as text")
    large = page.locator(cell.format(4))
    large.locator("summary").click()
    assert "end" not in large.inner_text()
    press(page, "Read all of the record at offset 4")
    shows(page, cell.format(4), "xend")
    shot(page, "values")
    assert page.locator("#records script, #records img, #records b, #records i").count() == 0
    assert page.title() == "fakekafka"
    press(page, "Close the records")


def test_a_record_is_produced_and_a_topic_created_and_deleted(page: Any, cluster: Cluster) -> None:
    """Forms produce a record and create and delete a topic; deletion asks for confirmation."""
    page.locator("#topics summary", has_text="New topic").click()
    page.get_by_label("Name of the new topic", exact=True).fill("by-hand")
    page.get_by_label("Partitions", exact=True).fill("2")
    page.get_by_label("Replicas", exact=True).fill("3")
    press(page, "Create the topic")
    shows(page, "#topics [data-topic='by-hand']", "2 partitions")
    press(page, "Look at the records of by-hand-1")
    shows(page, "#records", "There are no records here.")
    page.locator("#records summary", has_text="Produce a record").click()
    page.get_by_label("Key", exact=True).fill("k")
    page.get_by_label("Value", exact=True).fill("<written>")
    press(page, "Produce the record")
    shows_rows(page, 0, 0)
    page.get_by_label("Null instead of the value", exact=True).check()
    press(page, "Produce the record")
    shows_rows(page, 0, 1)
    produced = cluster.records("by-hand", 1)
    assert [(r.key, r.value) for r in produced] == [(b"k", b"<written>"), (b"k", None)]
    press(page, "Close the records")
    press(page, "Delete the topic by-hand")
    shows(page, "#topics [data-topic='by-hand'] button", "Delete: sure?")
    assert "by-hand" in cluster.topics()
    press(page, "Delete the topic by-hand")
    page.locator("#topics [data-topic='by-hand']").wait_for(state="detached")
    assert "by-hand" not in cluster.topics()


def test_offsets_of_a_group_without_members_are_reset(page: Any, cluster: Cluster) -> None:
    """The offsets of a group without members are reset to the end and the beginning, and the group
    is deleted."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    cluster.create_topic("ledger", replication_factor=1)
    cluster.produce("ledger", ["a", "b", "c"])
    group = "audit/2 <b>"
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    consumer = confluent_kafka.Consumer({**servers, "group.id": group})
    position = confluent_kafka.TopicPartition("ledger", 0, 1)
    consumer.commit(offsets=[position], asynchronous=False)
    consumer.close()
    row = f'#groups tr[data-group="{group}"]'
    for to, words in (("latest", "ledger-0 3 of 3"), ("earliest", "ledger-0 0 of 3 lag 3")):
        label = f"Reset the offsets of {group} to the {to}"
        press(page, label)
        press(page, label)
        shows(page, row, words)
    press(page, f"Delete the group {group}")
    press(page, f"Delete the group {group}")
    page.locator(row).wait_for(state="detached")


def test_elections_stand_on_the_time_line_and_links_lead_on(page: Any, cluster: Cluster) -> None:
    """The time line has a labelled mark for each election; the API has a page of its own."""
    cluster.broker(2).shutdown()
    cluster.broker(2).start()
    cluster.wait_for_in_sync("orders")
    page.locator("#timeline [data-lane='election'] .mark").first.wait_for()
    mark = page.locator("#timeline [data-lane='election'] .mark").last
    assert "leads in epoch" in mark.get_attribute("title")
    guide = page.get_by_role("link", name="Guide", exact=True).get_attribute("href")
    assert guide.startswith("https://fakekafka.github.io/")
    page.get_by_role("link", name="API", exact=True).click()
    page.get_by_text("/topics/{topic}/{partition}/page").wait_for()
    assert page.evaluate(WIDER_THAN_THE_SCREEN, "main *, header *") == []
    assert page.evaluate(HARD_TO_READ, "body") == []
    page.get_by_role("link", name="The cluster", exact=True).click()
    page.wait_for_selector("[data-broker='3']")
    cluster.elect_leaders()
    leader_is(page, "orders-1", 2)


def test_offsets_groups_and_transactions_are_shown(page: Any, cluster: Cluster) -> None:
    """The page shows high watermark and log end of each replica, members, committed offsets and lag
    of groups, and open transactions."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    cluster.produce("orders", [f"record {n}" for n in range(10)])
    consumer = confluent_kafka.Consumer({**servers, "group.id": GROUP, "client.id": "till-1"})
    producer = confluent_kafka.Producer({**servers, "transactional.id": "transfers"})
    with contextlib.closing(consumer):
        consumer.subscribe(["orders"])
        cluster.wait_until(
            lambda: not consumer.poll(0.05) and cluster.group(GROUP).state == "Stable", 20
        )
        partition = confluent_kafka.TopicPartition("orders", 0, 4)
        consumer.commit(offsets=[partition], asynchronous=False)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("orders", b"open", partition=0)
        producer.flush()
        row = "#groups tr[data-group]"
        shows(page, row, GROUP)
        shows(page, row, "Stable")
        shows(page, row, "till-1")
        shows(page, row, "orders-0 4 of 11 lag 7")
        assert page.locator("#groups img").count() == 0
        shows(page, "#transactions tr", "transfers")
        shows(page, "#transactions tr", "Ongoing")
        shows(page, "[data-partition='orders-0']", "HW 11")
        shot(page, "groups")
        producer.abort_transaction()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width_px", [LAPTOP_PX, PHONE_PX])
def test_the_page_is_readable_on_every_screen(
    page: Any, cluster: Cluster, scheme: str, width_px: int
) -> None:
    """At any screen size no element is wider than the screen, no text lacks contrast, and no button
    lacks a name."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width_px, "height": 800})
    topic = f"readable-{scheme}-{width_px}"
    cluster.create_topic(topic, replication_factor=1)
    cluster.produce(topic, ["x" * 900, '{"paid": true}', None], headers=[("trace", b"1")])
    shows(page, f"#topics [data-topic='{topic}']", "LEO 3")
    press(page, f"Look at the records of {topic}-0")
    page.locator("#records tr[data-offset]").first.wait_for()
    page.locator("#topics summary", has_text="New topic").click()
    page.locator("#records summary", has_text="Produce a record").click()
    assert page.evaluate(WIDER_THAN_THE_SCREEN, "main *, header *") == []
    assert page.evaluate(HARD_TO_READ, "body") == []
    assert page.evaluate(WITHOUT_A_NAME) == []
    shot(page, f"{scheme}-{width_px}")


def test_light_and_dark_are_chosen_by_a_button(page: Any) -> None:
    """A button switches between light and dark, and the browser remembers the choice."""
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(246, 248, 250)"
    press(page, "Change between light and dark")
    assert page.evaluate(colour) == "rgb(13, 17, 23)"
    page.reload()
    page.wait_for_selector("[data-broker='3']")
    assert page.evaluate(colour) == "rgb(13, 17, 23)"
    press(page, "Change between light and dark")


def test_refusals_are_shown_in_the_words_of_the_cluster(
    browser: Any, server: ControlServer
) -> None:
    """Refusals are shown in the cluster's words. The test uses its own page, as the browser logs
    the status in the console."""
    page = browser.new_page()
    page.goto(server.url)
    page.wait_for_selector("[data-broker='3']")
    answer = '{"error": "it cannot be now"}'
    page.route(
        "**/brokers/3/pause",
        lambda route: route.fulfill(status=400, content_type="application/json", body=answer),
    )
    press(page, "Pause broker 3")
    shows(page, "#notices .bad", "Pause broker 3: it cannot be now")
    page.close()


HOSTILE = """<!doctype html><title>other</title><form method="post" target="frame"
action="URL/brokers/3/kill"></form><iframe name="frame"></iframe><script>
const other = document.createElement('iframe');
const loaded = frame => new Promise(resolve => { frame.onload = resolve; });
(async () => {
    await fetch('URL/brokers/3/kill', {method: 'POST', mode: 'no-cors', body: '{}'});
    document.forms[0].submit();
    await loaded(document.querySelector('iframe'));
    other.src = 'URL/';
    document.body.append(other);
    await loaded(other);
    document.title = await fetch('URL/state').then(() => 'read', () => 'refused');
})();
</script>"""


@contextlib.contextmanager
def other_site(document: bytes) -> Iterator[str]:
    """Run a web server on another port, which is another site, and give its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_: object) -> None:
            """Log no requests."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_page_of_another_site_cannot_kill_a_broker(
    browser: Any, server: ControlServer, cluster: Cluster
) -> None:
    """A page of another site can neither kill a broker, by script or form, nor read or frame
    anything."""
    page = browser.new_page()
    answers: list[int] = []
    page.on(
        "response", lambda answer: answers.append(answer.status) if "/kill" in answer.url else None
    )
    with other_site(HOSTILE.replace("URL", server.url).encode()) as url:
        page.goto(url)
        page.wait_for_function("document.title === 'refused'")
        framed = page.frames[-1].content()
    page.close()
    assert answers == [403, 403]
    assert "Brokers" not in framed
    assert cluster.broker(3).is_alive


def test_topics_are_found_by_name_and_typing_is_not_disturbed(page: Any, cluster: Cluster) -> None:
    """Topics are found by name, and the page's updates do not disturb typing."""
    cluster.create_topic("refunds")
    shows(page, ".topic summary", "refunds")
    page.get_by_label("Filter topics by name").press_sequentially("refu", delay=400)
    assert page.locator(".topic").count() == 1
    assert page.evaluate("document.activeElement.value") == "refu"
    page.get_by_label("Filter topics by name").fill("nothing like it")
    shows(page, "#topics", "No topic has this in its name.")


def get(url: str, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return urllib.request.urlopen(urllib.request.Request(url, headers=named), timeout=10)


def test_the_page_loads_nothing_from_elsewhere(server: ControlServer) -> None:
    """The page runs only its own scripts and styles, and no other page can frame it."""
    with get(server.url) as answer:
        policy = answer.headers["Content-Security-Policy"]
        text = answer.read().decode()
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in text
    assert "https:" not in text
    with get(server.url + "/page/main.js") as answer:
        assert answer.headers["Content-Type"].startswith("text/javascript")


def test_a_link_of_another_site_may_lead_to_the_page(server: ControlServer) -> None:
    """A link of another site may open the page: its HTML holds no cluster data, and its own
    requests follow from its own origin."""
    with get(server.url, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate") as answer:
        assert answer.status == 200
    for path, mode in (("/state", "navigate"), ("/", "cors")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(server.url + path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode=mode)
        refused.value.close()
        assert refused.value.code == 403
