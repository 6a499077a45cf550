"""The page as a person uses it, in a real Chromium."""

import csv
import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import httpx
import pytest

from tapnet import load_dataset
from tests.helpers.pages import EVIL, make_model, node_link, running

pytest.importorskip("selenium", reason="the browser tests need selenium: pip install selenium")
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not CHROMIUM or not DRIVER,
    reason="no Chromium here, so the page is not tried in a browser (Debian: apt-get install chromium chromium-driver)",
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CONTROLS = (
    *("by-number", "by-class", "by-least", "by-most", "by-right", "by-part", "list", "file", "previous", "next"),
    *("reset", "connectivity", "ratio-0", "ratio-1", "ratio-2", "method", "attribution", "compare", "larger"),
    *("save-svg", "save-csv", "save-json"),
)


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory, downloads):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
    yield driver
    driver.quit()


class Visit:
    """What a person does and sees."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def __call__(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self(selector).text

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def until(self, condition, what):
        WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda _: condition(), what)

    def until_quiet(self):
        self.until(lambda: self("#graph").get_attribute("aria-busy") == "false", "an answer")

    def until_title(self, title):
        self.until(lambda: self.text("#title") == title, title)
        self.until_quiet()

    def open(self, hash_="", width=1280, height=900, scheme="light"):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}/{hash_}")
        self.until(lambda: len(self.all("#panels svg")) == 4, "the pictures")
        self.until_quiet()
        self.until_attributed()
        return self

    def until_attributed(self):
        self.until(lambda: self("#rests").get_attribute("aria-busy") == "false", "the attribution")

    def kept(self, level):
        """The nodes of a picture."""
        script = (
            "return [...document.querySelectorAll(`[data-level='${arguments[0]}'] .node`)].map(n => n.dataset.node)"
        )
        return {int(node) for node in self.run(script, level)}

    def slide(self, slider, *keys):
        self(f"#{slider}").send_keys(*keys)
        self.until_quiet()


@pytest.fixture
def visit(chromium, page):
    """A visit during which the browser has nothing to complain about: no error, nothing that the policy blocks."""
    chromium.get_log("browser")
    visit = Visit(chromium, page)
    yield visit
    said = [entry["message"] for entry in chromium.get_log("browser")]
    assert [message for message in said if "api/graph?" not in message] == []  # a refused file is the browser's news


def answer(page, path):
    return httpx.get(f"{page}/api/{path}", timeout=30).json()


# ---- choosing ----


def test_the_page_says_what_pooling_kept_and_not_what_mattered(visit):
    words = visit.open().text("#kept").lower()
    assert "what pooling kept" in words
    assert not re.search(r"matter|expla|important|because|relevant|rests on", words)
    below = visit.run(
        "return document.querySelector('#rests').compareDocumentPosition(document.querySelector('#kept'))"
    )
    assert below == 4  # DOCUMENT_POSITION_FOLLOWING: attribution comes first


def test_the_first_graph_is_there_with_its_prediction_and_pictures(visit, page):
    visit.open()
    view = answer(page, "graphs/0")
    assert visit.text("#title") == "MUTAG, graph 0"
    assert f"{len(view['nodes'])} nodes, {len(view['edges'])} edges" in visit.text("#facts")
    best = max(view["probabilities"])
    assert f"{view['predicted']}, {100 * best:.1f} %" in visit.text("#prediction")
    assert [bar.text.split("\n")[0].removesuffix(" (true class)") for bar in visit.all("#bars li")] == view["classes"]
    for level, layer in enumerate(view["layers"], 1):
        kept = {node for node, stays in zip(layer["nodes"], layer["kept"], strict=True) if stays}
        assert visit.kept(level) == kept
        assert f"{len(kept)} nodes" in visit.all("#panels figcaption")[level].text
    assert "C (" in visit.text("#legend")
    assert {letter.text for letter in visit.all("[data-level='0'] .letter")} == set(view["categories"])


def test_graphs_are_found_by_number_class_size_and_outcome(visit, page):
    visit.open()
    graphs = answer(page, "graphs")
    predicted = answer(page, "predictions?first=0")["predicted"]
    visit.until(lambda: visit.all("#list li") and re.search("[✓✗]", visit.all("#list li")[0].text), "predictions")
    visit("#by-number").send_keys("42", Keys.ENTER)
    visit.until_title("MUTAG, graph 42")
    visit("#by-number").clear()
    Select(visit("#by-class")).select_by_visible_text("not mutagenic")
    visit("#by-most").send_keys("12")
    Select(visit("#by-right")).select_by_value("wrong")
    wanted = [
        i
        for i, (kind, nodes) in enumerate(zip(graphs["class"], graphs["nodes"], strict=True))
        if kind == 0 and nodes <= 12 and predicted[i] != 0
    ]
    assert visit.text("#count") == f"{len(wanted)} of 188 graphs"
    assert [int(row.get_attribute("id").removeprefix("graph-")) for row in visit.all("#list li")] == wanted


def test_graphs_are_found_by_the_names_of_files_and_nodes(chromium, named, named_folder, tmp_path):
    named.saved.save(tmp_path / "named.safetensors")
    with running(tmp_path / "named.safetensors", "--dataset", named_folder) as (address, _):
        visit = Visit(chromium, address).open()
        visit.until(lambda: len(visit.all("#list li")) == 3, "the list")
        assert "Ring.json" in visit.text("#title")
        assert EVIL in visit.text("#graph-1")  # as text
        visit("#by-number").send_keys("malice")
        visit.until(lambda: visit.text("#count").startswith("1 of 3 graphs"), "the search")
        visit("#by-number").send_keys(Keys.ENTER)
        visit.until(lambda: EVIL in visit.text("#title"), "the graph")
        visit.until_quiet()
        assert visit.text("#votes-title").startswith("Node malice")  # the node that was searched for
        assert visit.all("#title img") == visit.all("#list img") == []
        visit("#by-number").clear()
        visit("#by-number").send_keys("RING", Keys.ENTER)
        visit.until(lambda: "Ring.json" in visit.text("#title"), "the graph")


def test_the_list_and_the_arrows_go_from_graph_to_graph(visit):
    visit.open()
    visit("#graph-4").click()
    visit.until_title("MUTAG, graph 4")
    visit("#list").send_keys(Keys.ARROW_DOWN)
    visit.until_title("MUTAG, graph 5")
    assert visit("#list").get_attribute("aria-activedescendant") == "graph-5"
    visit("#previous").click()
    visit.until_title("MUTAG, graph 4")


# ---- sliders ----


def kept_by(page, number, query):
    """The nodes that the first pooling keeps, by the server's word."""
    layer = answer(page, f"graphs/{number}{query}")["layers"][0]
    return {node for node, kept in zip(layer["nodes"], layer["kept"], strict=True) if kept}


def test_sliders_change_the_selection_at_once_and_go_back(visit, page):
    number = next(i for i in range(188) if kept_by(page, i, "") != kept_by(page, i, "?connectivity=1"))
    visit.open(f"#graph={number}")
    before = [visit.kept(level) for level in range(4)]
    assert not visit("#reset").is_enabled()
    visit.slide("ratio-0", *[Keys.ARROW_LEFT] * 10)
    assert len(visit.kept(1)) < len(before[1])
    assert visit.text("#ratio-0-value") == f"70 %: {len(visit.kept(1))} of {len(before[0])}"
    visit.slide("connectivity", Keys.END)
    want = answer(page, f"graphs/{number}?connectivity=1&ratios=0.7,0.6,0.4")
    assert visit.kept(1) == kept_by(page, number, "?connectivity=1&ratios=0.7,0.6,0.4")
    assert f"{100 * max(want['probabilities']):.1f} %" in visit.text("#prediction")
    address = visit.driver.current_url
    visit("#reset").click()
    visit.until(lambda: [visit.kept(level) for level in range(4)] == before, "the selection as trained")
    visit.open("#" + address.partition("#")[2])
    assert visit.text("#connectivity-value") == "1.00"  # a bookmark brings everything back
    assert visit("#ratio-0").get_attribute("value") == "0.7"


# ---- what the prediction rests on ----


def fills(visit):
    """The colours of the nodes of the attribution, by number."""
    nodes = visit.all("#attribution [data-node]")
    return {int(node.get_attribute("data-node")): node.get_attribute("fill") for node in nodes}


def click_node(visit, node):
    circle = visit(f"#attribution [data-node='{node}']")
    webdriver.ActionChains(visit.driver).move_to_element(circle).click().perform()
    visit.until_quiet()


@pytest.mark.parametrize("method", ["surrogate", "occlusion", "masking", "shapley", "gradients"])
def test_every_method_shows_its_attribution_with_its_fidelity(visit, page, method):
    visit.open("#graph=3")
    Select(visit("#method")).select_by_value(method)
    visit.until_attributed()
    found = answer(page, f"graphs/3/attribution?method={method}")
    visit.until(lambda: visit.text("#fidelity") == found["fidelity"]["sentence"], "the sentence")
    for node, fill in fills(visit).items():
        red, blue = int(fill[1:3], 16), int(fill[5:7], 16)
        if abs(found["nodes"][node]) > 0.1 * max(map(abs, found["nodes"])):
            assert (red > blue) == (found["nodes"][node] > 0)  # orange speaks for it, blue against it
    visit("#more summary").click()
    assert len(visit.all("#fidelity-table tbody tr")) == 3
    visit("#attribution").send_keys(Keys.HOME)
    best = found["nodes"].index(max(found["nodes"]))
    assert visit.text("#votes-title").startswith(f"Node {best}, ")
    assert "1st of" in visit.text("#node-attribution")


def test_a_click_takes_a_node_away_and_another_puts_it_back(visit, page):
    visit.open("#graph=3")
    before, coloured = visit.text("#prediction"), fills(visit)
    click_node(visit, 5)
    want = answer(page, "graphs/3?without=5")
    share = want["probabilities"][want["best"]]
    assert f"{want['predicted']}, {100 * share:.1f} %" in visit.text("#prediction")
    assert "Without node 5" in visit.text("#change")
    assert visit.kept(0) == set(coloured) - {5}
    assert visit.kept(1) == kept_by(page, 3, "?without=5")
    assert fills(visit) == coloured | {5: "none"}  # what the whole graph's prediction rests on stays
    click_node(visit, 7)
    assert "Without nodes 5, 7" in visit.text("#change")
    assert "without=5%2C7" in visit.driver.current_url
    click_node(visit, 5)
    click_node(visit, 7)
    assert not visit("#change").is_displayed()
    assert visit.text("#prediction") == before
    visit("#attribution").send_keys(Keys.HOME, Keys.ENTER)
    visit.until(lambda: visit("#change").is_displayed(), "the change")
    visit("#put-back").click()
    visit.until(lambda: not visit("#change").is_displayed(), "all nodes")
    visit.open("#graph=3&without=5")
    assert "Without node 5" in visit.text("#change")  # a bookmark brings it back
    visit.open("#graph=3&without=900")
    assert visit.text("#prediction") == before
    assert len(visit.driver.get_log("browser")) == 1  # the answer to a bookmark that does not fit


def test_two_graphs_are_compared_on_one_scale(visit, page):
    visit.open("#graph=3")
    visit("#compare").click()
    visit("#next").click()
    visit.until_title("MUTAG, graph 4")
    visit.until_attributed()
    assert [c.text.split("\n")[0] for c in visit.all("#attributions figcaption")] == [
        "MUTAG, graph 4",
        "MUTAG, graph 3",
    ]
    sentences = [answer(page, f"graphs/{i}/attribution")["fidelity"]["sentence"] for i in (4, 3)]
    visit.until(lambda: [p.text for p in visit.all("#attributions p")] == sentences, "both sentences")
    visit("#compare").click()
    assert len(visit.all("#attributions svg")) == 1


def test_a_model_that_says_how_sure_it_is(chromium, sure, tmp_path):
    sure.saved.save(tmp_path / "sure.safetensors")
    with running(tmp_path / "sure.safetensors") as (address, _):
        visit = Visit(chromium, address).open("#graph=3")
        words = visit.text("#sure")
        assert "calibrated (temperature)" in words
        assert "Set of classes at 90 %" in words
        assert "training graphs" in words


def test_results_show_the_table_the_pictures_and_their_code(chromium, compared):
    with running(compared) as (address, _):
        visit = Visit(chromium, address)
        chromium.get(address)
        visit.until(lambda: visit("main").get_attribute("aria-busy") == "false", "the results")
        assert "Verdict: " in visit.text("#verdict")
        assert visit.text("#table tbody th").startswith("gin")
        assert len(visit.all("#settings tbody tr")) > 6
        drawn = "return [...document.querySelectorAll('#pictures img')].every(i => i.complete && i.naturalWidth > 100)"
        visit.until(lambda: visit.run(drawn), "the pictures")
        assert not visit("#code-comparison").is_displayed()
        visit("#pictures button").click()
        assert "plot_comparison(" in visit.text("#code-comparison")
        assert not visit("#views").is_displayed()  # there is no model whose graphs could be shown
        assert [entry["message"] for entry in chromium.get_log("browser")] == []


# ---- votes ----


def test_pointing_at_a_node_shows_its_votes_in_every_layer(visit, page):
    visit.open("#graph=3")
    view = answer(page, "graphs/3")
    webdriver.ActionChains(visit.driver).move_to_element(visit("[data-level='0'] [data-node='5']")).perform()
    visit.until(lambda: visit.text("#votes-title").startswith("Node 5, "), "votes")
    first = [cell.text for cell in visit.all("#votes-body tr:first-child td")]
    for cell, part in zip(first, ("local", "global", "connectivity", "score"), strict=False):
        assert float(cell.split()[0]) == pytest.approx(view["layers"][0][part][5], rel=0.01)
    assert first[-1] in ("kept", "dropped")
    assert len(visit.all("#votes-body tr")) == 3
    assert len(visit.all("#panels .ring")) == 4
    assert len(visit.all("#attribution .ring")) == 1


def test_the_keyboard_goes_from_node_to_node_and_says_so(visit, page):
    visit.open("#graph=3")
    score = answer(page, "graphs/3")["layers"][0]["score"]
    picture = visit("[data-level='0']")
    picture.send_keys(Keys.HOME)
    best = score.index(max(score))
    assert visit.text("#votes-title").startswith(f"Node {best}, ")
    said = visit("#said").get_attribute("textContent")
    assert "pooling 1: kept, score" in said
    assert "rank 1" in said
    seen = set()
    for key in (Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_RIGHT, Keys.ARROW_DOWN):
        for _ in range(3):
            picture.send_keys(key)
            seen.add(visit.text("#votes-title"))
    assert len(seen) > 4
    picture.send_keys(Keys.ESCAPE)
    assert visit("#no-votes").is_displayed()
    assert not visit.all(".ring")


def test_all_nodes_stand_in_a_table(visit, page):
    visit.open("#graph=3")
    visit("#all summary").click()
    visit.until(lambda: visit.all("#all-table tbody tr"), "rows")
    assert len(visit.all("#all-table tbody tr")) == len(answer(page, "graphs/3")["nodes"])
    visit("#all-table tbody button").click()
    assert visit.text("#votes-title").startswith("Node ")


# ---- files ----

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"


@pytest.fixture
def molecule(tmp_path):
    file = tmp_path / "nitro.json"
    file.write_text(node_link([*"CCCCCCNO", HOSTILE], [(i, (i + 1) % 6) for i in range(6)] + [(0, 6), (6, 7), (6, 8)]))
    return file


def test_a_file_of_ones_own_is_shown_and_follows_the_sliders(visit, molecule):
    visit.open()
    visit("#file").send_keys(str(molecule))
    visit.until_title("nitro.json")
    assert "9 nodes, 9 edges" in visit.text("#facts")
    assert "not trained on" in visit.text("#notes")
    assert HOSTILE in visit.text("#legend")  # as text
    visit.slide("ratio-0", Keys.HOME)
    assert len(visit.kept(1)) == 1
    webdriver.ActionChains(visit.driver).move_to_element(visit("[data-level='0'] [data-node='6']")).perform()
    visit.until(lambda: visit.text("#votes-title") == "Node atom 6, N", "its own name")


def test_a_file_can_be_dropped_anywhere(visit, molecule):
    visit.open()
    script = """
      const bag = new DataTransfer();
      bag.items.add(new File([arguments[0]], "dropped.json"));
      document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: bag, bubbles: true, cancelable: true}));
    """
    visit.run(script, molecule.read_text())
    visit.until_title("dropped.json")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.json", "{", "bad.json: not JSON"),
        ("bomb.graphml", "<!DOCTYPE a [<!ENTITY b 'c'>]><graphml/>", "DOCTYPE"),
        ("large.json", " " * (5 << 20), "4 MB"),
        ("notes.txt", "hello", ".graphml"),
    ],
)
def test_a_bad_file_gets_a_message_and_the_page_goes_on(visit, tmp_path, name, content, message):
    visit.open("#graph=3")
    (tmp_path / name).write_text(content)
    visit("#file").send_keys(str(tmp_path / name))
    visit.until(lambda: message in visit.text("#own-message"), message)
    assert visit.text("#title") == "MUTAG, graph 3"
    visit.slide("ratio-0", Keys.ARROW_LEFT)
    visit("#next").click()
    visit.until_title("MUTAG, graph 4")
    assert not visit("#own-message").is_displayed()


def test_a_molecule_is_typed_in_and_explained(chromium, tmp_path):
    pytest.importorskip("rdkit", reason="molecules need RDKit: pip install rdkit")
    table = tmp_path / "table.csv"
    table.write_text("smiles,kind\nc1ccccc1,ring\nCCO,chain\nCC(=O)O,chain\n")
    dataset = load_dataset(table, target="kind")
    make_model(dataset).save(tmp_path / "model.safetensors")
    with running(tmp_path / "model.safetensors", "--dataset", table) as (address, _):
        visit = Visit(chromium, address).open()
        assert "undefined" not in visit.text("#own-hint")
        visit("#smiles").send_keys("CC(=O)Oc1ccccc1", Keys.ENTER)
        visit.until_title("CC(=O)Oc1ccccc1")
        visit.until_attributed()
        assert "10 nodes, 10 edges" in visit.text("#facts")
        visit.until(lambda: len(visit.all("#attributions [data-node]")) == 10, "every atom")
        visit("#smiles").clear()
        visit("#smiles").send_keys("C1CC")
        visit("#predict").click()
        visit.until(lambda: visit.text("#own-message") == "C1CC: not a SMILES", "the reason")
        assert visit.text("#title") == "CC(=O)Oc1ccccc1"


# ---- downloads ----


def test_downloads_hold_what_is_shown(visit, page, downloads):
    visit.open("#graph=3&connectivity=0.5&ratios=0.8,0.6,0.4")
    for button, ending in (("save-json", "json"), ("save-svg", "svg"), ("save-csv", "csv")):
        visit(f"#{button}").click()
        file = Path(downloads) / f"MUTAG-graph-3.{ending}"
        visit.until(file.exists, file.name)
    view = json.loads((downloads / "MUTAG-graph-3.json").read_text())
    want = answer(page, "graphs/3?connectivity=0.5")
    assert (view["layers"], view["connectivity"], view["places"]) == (want["layers"], 0.5, want["places"])
    root = ET.parse(downloads / "MUTAG-graph-3.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    panels = root.findall(f"{svg}svg")[:5]
    nodes = [{int(c.get("data-node")) for c in p.findall(f"{svg}circle") if c.get("data-node")} for p in panels]
    assert nodes == [visit.kept(0), *(visit.kept(level) for level in range(4))]  # the attribution comes first
    assert not root.findall(f".//{svg}script")
    found = answer(page, "graphs/3/attribution?connectivity=0.5")
    assert view["attribution"] == found
    assert found["fidelity"]["sentence"] in " ".join("".join(text.itertext()) for text in root.iter(f"{svg}text"))
    rows = list(csv.DictReader((downloads / "MUTAG-graph-3.csv").read_text().splitlines()))
    assert {row["Node"]: float(row["Attribution"]) for row in rows} == dict(
        zip(want["nodes"], found["nodes"], strict=True)
    )
    assert {row["Pooling 1"] for row in rows} == {"kept", "dropped"}


# ---- everyone ----


def test_a_phone_needs_no_sideways_scrolling(visit):
    visit.open("#graph=3", width=360, height=740)
    for summary in visit.all("summary"):
        if summary.find_element(By.XPATH, "..").get_attribute("open") is None:
            summary.click()
    visit("[data-level='1']").send_keys(Keys.HOME)
    assert visit.run("return document.documentElement.scrollWidth") <= 360
    wide = "return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 361 && "
    assert visit.run(wide + "!e.closest('.scroll')).map(e => e.outerHTML.slice(0, 80))") == []
    small = "return [...document.querySelectorAll('button, select, input')].filter(e => e.offsetHeight "
    assert visit.run(small + "&& e.offsetHeight < 24 && !e.closest('table')).map(e => e.id)") == []


def test_the_tab_key_reaches_every_control_in_the_order_of_the_page(visit):
    visit.open("#graph=3&ratios=0.7,0.6,0.4")
    reached = []
    for _ in range(60):
        webdriver.ActionChains(visit.driver).send_keys(Keys.TAB).perform()
        name = visit.run("const e = document.activeElement; return e.id || e.dataset.level || e.className || e.tagName")
        if name == "BODY":
            break
        reached.append(name)
    assert [name for name in reached if name in CONTROLS] == list(CONTROLS)
    assert [name for name in reached if name in "0123"] == list("0123")
    assert reached[0] == "skip"
    visit("a.skip").send_keys(Keys.ENTER)
    assert visit.driver.switch_to.active_element.get_attribute("id") == "graph"
    assert visit.text("#title") == "MUTAG, graph 3"


def test_every_control_and_picture_has_a_name(visit):
    visit.open()
    nodes = visit.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    interactive = {"button", "slider", "combobox", "spinbutton", "searchbox", "listbox", "application", "link"}
    found = [n for n in nodes if not n["ignored"] and n.get("role", {}).get("value") in interactive]
    assert {n["role"]["value"] for n in found} >= {"button", "slider", "combobox", "listbox", "application"}
    assert [n["role"]["value"] for n in found if not n.get("name", {}).get("value", "").strip()] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(visit, scheme):
    visit.open("#graph=3", scheme=scheme)
    visit("[data-level='0']").send_keys(Keys.HOME)
    script = """
      const ground = (e) => {
        for (; e; e = e.parentElement) {
          const colour = getComputedStyle(e).backgroundColor;
          if (colour !== "rgba(0, 0, 0, 0)") return colour;
        }
        return "rgb(255, 255, 255)";
      };
      return [...document.querySelectorAll("body *")]
        .filter((e) => e.checkVisibility() && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
        .filter((e) => !(e instanceof SVGElement) && !e.disabled && !e.closest("option"))
        .map((e) => [getComputedStyle(e).color, ground(e), e.id || e.className || e.tagName]);
    """
    for ink, ground, name in visit.run(script):
        assert contrast(ink, ground) >= 4.5, (name, ink, ground)


def contrast(ink, ground):
    def light(colour):
        parts = [int(v) / 255 for v in re.findall(r"\d+", colour)[:3]]
        r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(ink), light(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)
