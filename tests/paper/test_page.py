"""Tables in a Markdown page: what is around them stays."""

import pytest

from tapnet.errors import DataError
from tapnet.paper.page import BEGIN, END, insert_tables


def test_tables_that_were_not_asked_for_stay_on_the_page(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    page.write_text(insert_tables(page, ["how"], ["## A\n\n### of A\n\n1\n", "## B\n\n2\n"]))
    again = insert_tables(page, ["how, again"], ["## B\n\n3\n", "## C\n\n4\n"])
    assert again == f"{BEGIN}\n\nhow, again\n\n## A\n\n### of A\n\n1\n\n## B\n\n3\n\n## C\n\n4\n\n{END}\n"
    page.write_text(again)
    assert insert_tables(page, ["how, again"], []) == again


def test_tables_go_between_the_marks_and_the_rest_of_the_page_stays(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text(f"# Mine\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    text = insert_tables(page, ["how"], ["## new\n"])
    assert text.startswith("# Mine\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "## new" in text
    page.write_text("no marks")
    with pytest.raises(DataError, match="tables: begin"):
        insert_tables(page, [], [])
