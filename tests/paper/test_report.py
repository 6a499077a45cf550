"""RESULTS.md is what the stored results give: its numbers, its tables, its length."""

import re
from pathlib import Path

import pytest

from tapnet.errors import DataError
from tapnet.experiments.compare import compare_runs
from tapnet.experiments.cross_validate import cross_validate
from tapnet.experiments.store import Store
from tapnet.paper.cells import StoredResults, make_cells
from tapnet.paper.comparisons import FOLDER, TITLES, comparison_rows, comparison_section, load_comparisons
from tapnet.paper.numbers import COMMON_TABLE
from tapnet.paper.overview import SYSTEMS, draw_overview, effects
from tapnet.paper.page import BEGIN, fill_values
from tapnet.paper.tables import csv_rows, markdown
from tapnet.paper.targets import TARGETS
from tapnet.paper.variants import variant_rows, variants_section

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
    return found + variant_rows(results, "MUTAG")


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
    for name in TITLES:
        section = comparison_section(name, load_comparisons(RESULTS, name))
        assert section is None or markdown([section]).strip() in page
    assert markdown([variants_section(results, "MUTAG")]).strip() in page


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
