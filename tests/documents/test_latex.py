"""Tables of LaTeX: environments, rules, spans, comments, escapes."""

from __future__ import annotations

import pytest

from layerscope.documents import latex
from layerscope.documents.types import Table
from tests.documents.shown import check_positions, grid


def only(document: str) -> Table:
    (table,) = latex.tables(document.split("\n"))
    return table


TABLE = r"""\begin{table}[h] % a comment & more \\
\caption{Layers of \textbf{LeNet}}
\begin{tabular}{l|r@{}r}
\toprule
Layer & Params & Output Size \\
\midrule
conv1\_1 & 1,728 & $224\times224$ \\ \hline  % 9 & 9 \\
\textbf{fc} \& more & \multicolumn{2}{c}{10\%} \\[2pt]
\cmidrule(lr){1-2} pool & & 7 \\
\bottomrule
\end{tabular}
\end{table}"""


def test_cells_of_a_tabular() -> None:
    table = only(TABLE)
    assert grid(table) == [
        ["Layer", "Params", "Output Size"],
        ["conv1_1", "1,728", r"$224\times224$"],
        ["fc & more", "10%", ""],
        ["pool", "", "7"],
    ]
    assert (table.form, table.line, table.last) == ("latex", 5, 10)
    assert table.title == "Layers of LeNet"
    assert (table.rows[0].cells[1].line, table.rows[0].cells[1].column) == (7, 12)


@pytest.mark.parametrize(
    "begin, name",
    [
        (r"\begin{tabular*}{\textwidth}[t]{ll}", "tabular*"),
        (r"\begin{tabularx}{0.5\textwidth}{lX}", "tabularx"),
        (r"\begin{longtable}[c]{l{2cm}l}", "longtable"),
        (r"\begin{tabular}[t]{ll}", "tabular"),
    ],
)
def test_environments_and_their_arguments(begin: str, name: str) -> None:
    document = f"{begin}\nLayer & Params \\\\\n\\endhead\nconv & 9 \\\\\n\\end{{{name}}}"
    table = only(document)
    assert grid(table) == [["Layer", "Params"], ["conv", "9"]]
    check_positions(table, document)


def test_a_caption_below_and_a_heading_below_groups() -> None:
    table = only(
        "\\begin{table}\n\\begin{tabular}{lll}\n & \\multicolumn{2}{c}{cost} \\\\\n"
        "Layer & Params & MACs \\\\\nconv & 1 & 2\n\\end{tabular}\n\\caption{Cost}\n\\end{table}"
    )
    assert grid(table) == [["Layer", "Params", "MACs"], ["conv", "1", "2"]]
    assert table.title == "Cost"


def test_a_line_break_inside_a_group_is_no_row() -> None:
    table = only(r"""\begin{tabular}{ll}
Layer & Params \\
\makecell{conv\\3x3} & \multirow{2}{*}{9} \\
\end{tabular}""")
    assert grid(table)[1] == ["conv 3x3", "9"]


@pytest.mark.parametrize(
    "document",
    [
        r"\begin{tabular}",
        r"\begin{tabular}{ll",
        r"\begin{tabular}{ll} Layer & Params",
        r"\end{tabular} & \\",
        r"\begin{tabular}{ll}" + "{" * 1_000,
        r"\begin{tabular}{ll}\end{longtable}",
    ],
)
def test_what_is_broken_is_no_table(document: str) -> None:
    assert list(latex.tables(document.split("\n"))) == []


def test_an_environment_that_is_not_closed_ends_at_an_empty_line() -> None:
    table = only(
        "\\begin{tabular}{ll}\nLayer & Params \\\\\na & 1 \\\\\n\nprose & more \\\\\nb & 2"
    )
    assert grid(table) == [["Layer", "Params"], ["a", "1"]]
