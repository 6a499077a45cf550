"""RESULTS.md is what the stored results give: its numbers, its tables, its length."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from tapnet.errors import DataError
from tapnet.experiments.compare import compare_runs
from tapnet.experiments.comparison import load_comparison
from tapnet.experiments.cross_validate import cross_validate
from tapnet.experiments.store import Store
from tapnet.paper.cells import StoredResults, make_cells
from tapnet.paper.comparisons import (
    FOLDER,
    LINKED,
    TITLES,
    comparison_page,
    comparison_rows,
    comparison_section,
    diagnostics_sections,
    load_comparisons,
)
from tapnet.paper.costs import COSTS, PoolCost, cost_rows, load_costs
from tapnet.paper.numbers import COMMON_TABLE
from tapnet.paper.overview import SYSTEMS, draw_overview, effects
from tapnet.paper.page import BEGIN, fill_values
from tapnet.paper.tables import Section, csv_rows, markdown, without_known_data
from tapnet.paper.targets import TARGETS
from tapnet.paper.variants import VARIED, variant_rows, variants_page

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def results():
    return list(Store(RESULTS).results())


@pytest.fixture(scope="module")
def rows(results):
    stored = StoredResults(results)
    cells = ((t, make_cells(t, ("paper", "fair"), stored, {})) for t in TARGETS.values())
    found = [row for target, of in cells for row in csv_rows(target, of, 12)]
    found += [row for name in TITLES for row in comparison_rows(name, load_comparisons(RESULTS, name))]
    found += cost_rows(load_costs(RESULTS))
    return found + [row for name in VARIED for row in variant_rows(results, name)]


def test_every_number_of_the_text_is_that_of_the_stored_results(rows):
    text, page = (RESULTS / "report.md").read_text(), (ROOT / "RESULTS.md").read_text()
    assert fill_values(text.partition(BEGIN)[0], rows) == page.partition(BEGIN)[0]


def test_a_number_of_the_text_has_a_place_or_is_the_papers():
    """Decimals that are written out are what the paper prints, or differences of such."""
    text = (RESULTS / "report.md").read_text()
    claims = re.sub(r"\{[^{}]*\}", "", text.partition("## Where the paper disagrees with itself")[0])
    written = set(re.findall(r"\d+\.\d+", claims))
    others = {str(number) for row in COMMON_TABLE.values() for printed in row.values() for number in printed if number}
    settings = {"0.003", "0.1"}  # a learning rate, λ
    papers = {"0.2", "0.3", "0.4", "1.0", "1.4", "2.8", "3.6", "4.1", "8.7", "2.29", "2.13"}
    assert written - others - settings <= papers


def test_the_page_is_short_and_its_tables_are_the_stored_ones(results):
    page = (ROOT / "RESULTS.md").read_text()
    assert len(page.split()) <= 6000
    abstract = page.partition("**Abstract.**")[2].partition("\n\n")[0]
    assert 100 < len(abstract.split()) <= 150
    costs = load_costs(RESULTS)
    for name in TITLES:
        tables = load_comparisons(RESULTS, name)
        assert not [
            row.folder for table in tables.values() for row in table.systems if Path(row.folder or "").is_absolute()
        ]
        shown = markdown([comparison_section(name, tables, brief=True, costs=costs)]).strip() in page
        assert shown or name in LINKED
        assert (RESULTS / FOLDER / f"{name}.md").read_text() == comparison_page(name, tables, costs)
        assert f"(results/{FOLDER}/{name}.md)" in page
    assert (RESULTS / "variants.md").read_text() == variants_page(results, {})
    assert "(results/variants.md)" in page


def test_a_place_that_is_in_no_table_is_named(rows):
    for place in ("{table2; TAPNet; PTC; paper; median}", "{table9; TAPNet; PTC; paper; mean}"):
        with pytest.raises(DataError, match="in no table"):
            fill_values(f"has {place}", rows)


def test_each_point_of_the_overview_is_a_difference_of_the_tables(results, rows, tmp_path):
    found = effects(StoredResults(results), {}, load_comparisons(RESULTS, "nested"))
    assert {effect.system for effect in found} == set(SYSTEMS)
    known = {
        (r["dataset"], r["system"], r["protocol"]): r for r in rows if r["target"] in ("table1", "table2", "pools")
    }
    for effect in found:
        if effect.protocol != "nested":
            row = known[effect.dataset, effect.system, effect.protocol]
            assert effect.difference == pytest.approx(row["difference_from_tapnet"])
            assert effect.high - effect.low == pytest.approx(2 * row["half_width_95"])
    assert draw_overview(found, tmp_path) == ["overview.png", "overview.svg"]
    assert draw_overview([], tmp_path) == []


@pytest.mark.filterwarnings("ignore")
def test_a_stored_comparison_becomes_a_table(tmp_path):
    runs = {name: cross_validate("MUTAG", name, folds=3, jobs=1) for name in ("majority", "size")}
    table = compare_runs(runs).save(tmp_path / FOLDER / "pooling" / "MUTAG")
    stored = load_comparisons(tmp_path, "pooling")
    section = comparison_section("pooling", stored)
    means = {row[0]: row[1].split()[0] for row in section.rows}
    assert list(means.values()) == [f"{system.mean:.1f}" for system in table.systems]
    assert any(table.verdict in note for note in section.notes)
    assert [row["mean"] for row in comparison_rows("pooling", stored)] == [s.mean for s in table.systems]
    assert comparison_section("nested", {}) is None
    assert diagnostics_sections(stored) == []
    brief = comparison_section("pooling", stored, brief=True)
    *systems, visible = brief.rows
    assert [row[1].split()[0] for row in systems] == list(means.values())
    assert visible[1] == f"{table.smallest_visible_difference:.1f}"
    assert "±" not in str(brief.rows)
    assert not any(table.verdict in note for note in brief.notes)


@pytest.mark.filterwarnings("ignore")
def test_what_pooling_layers_did_is_stored_with_a_comparison_and_shown(tmp_path):
    names = {"tapnet:topk": "topk", "tapnet:mincut": "mincut", "tapnet:none": "none"}
    runs = {name: cross_validate("MUTAG", pool=pool, folds=3, epochs=1, jobs=1) for name, pool in names.items()}
    table = load_comparison(compare_runs(runs).save(tmp_path).folder)
    assert {s.name: list(s.diagnostics) for s in table.systems} == {name: run.diagnostics for name, run in runs.items()}
    (section,), first = diagnostics_sections({"MUTAG": table}), table["tapnet:topk"].diagnostics[0]
    topk, mincut = section.rows
    assert "| Net_top-k | " in comparison_page("pooling", {"MUTAG": table}).partition(section.title)[2]
    assert topk[:3] == ("Net_top-k", f"{100 * first.nodes:.0f}", f"{100 * first.edges:.0f}")
    assert (topk[5], mincut[7]) == ("", "")  # nodes that are chosen are in no clusters, and clusters have no scores
    assert float(mincut[5]) == pytest.approx(table["tapnet:mincut"].diagnostics[0].entropy, abs=0.005)


@pytest.mark.filterwarnings("ignore")
def test_the_cost_of_a_pooling_stands_beside_its_accuracy(tmp_path):
    runs = {"tapnet": cross_validate("MUTAG", folds=3, epochs=1, jobs=1)}
    runs["majority"] = cross_validate("MUTAG", "majority", folds=3, jobs=1)
    table = {"MUTAG": compare_runs(runs)}
    costs = [
        PoolCost("tap", "DD", (0.5, 0.5, 0.5), 1.26, 1.0, 1.5, 7_600_000),
        PoolCost("tap", "PTC", None, 9, 9, 9, 9),
    ]
    section = comparison_section("cost", table, costs=costs)
    assert section.header == ("", "MUTAG", "DD, time", "DD, MB")
    assert [row[2:] for row in section.rows] == [("1.3", "8"), ("–", "–")]
    assert comparison_section("pooling", table, costs=costs).header == ("", "MUTAG", "PTC, time", "PTC, MB")
    assert comparison_section("pooling", table, brief=True, costs=costs).header == ("", "MUTAG")  # PTC is not in it
    assert comparison_section("nested", table, costs=costs).header == ("", "MUTAG")
    (tmp_path / COSTS).write_text(json.dumps({"costs": [asdict(one) for one in costs]}))
    assert load_costs(tmp_path) == costs
    (tmp_path / COSTS).write_text('{"costs": [{"pool": "tap"}]}')
    with pytest.raises(DataError, match=COSTS):
        load_costs(tmp_path)


def test_data_sets_are_described_in_the_first_table_that_has_them():
    table, known = Section("", ("", "PTC"), (("graphs", "344"), ("TAPNet", "72.6"))), set()
    assert without_known_data(table, known) == table
    assert without_known_data(table, known).rows == (("TAPNet", "72.6"),)
    other = Section("", ("", "PTC", "DD"), table.rows)
    assert without_known_data(other, known) == other
